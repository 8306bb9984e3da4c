#include "test/apiserver/load_spec.h"

#include <algorithm>

#include "net/ip_address.h"

namespace shunt::test_api {
namespace {

constexpr std::size_t kMaxServices = 1'000'000;  // 10.96.0.0/12 has no more addresses
constexpr std::size_t kMaxEndpoints = 100'000;   // of a Service
constexpr std::size_t kMaxPods = 8'000'000;      // 10.128.0.0/9
constexpr std::size_t kMaxNodes = 100'000;
constexpr double kMaxRate = 1'000'000;
constexpr double kMaxSeconds = 1'000'000;

// Reads members of one object and remembers the first thing that is wrong with them.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) {
      complain(where_ + " is no object");
    }
  }

  template <typename T>
  void number(const char* name, T& value, T min, T max) {
    const Json* found = find(name);
    if (found == nullptr) {
      return;
    }
    const bool fits =
        std::is_floating_point_v<T> ? found->is_number() : found->is_number_unsigned();
    if (!fits || found->get<T>() < min || found->get<T>() > max) {
      complain(std::string(name) + " is no number of a size that makes sense");
    } else {
      value = found->get<T>();
    }
  }

  void text(const char* name, std::string& value) {
    const Json* found = find(name);
    if (found != nullptr && !found->is_string()) {
      complain(std::string(name) + " is no string");
    } else if (found != nullptr) {
      value = found->get<std::string>();
    }
  }

  void flag(const char* name, bool& value) {
    const Json* found = find(name);
    if (found != nullptr && !found->is_boolean()) {
      complain(std::string(name) + " is neither true nor false");
    } else if (found != nullptr) {
      value = found->get<bool>();
    }
  }

  void texts(const char* name, std::vector<std::string>& value) {
    const Json* found = find(name);
    if (found == nullptr) {
      return;
    }
    const auto is_text = [](const Json& item) { return item.is_string(); };
    if (!found->is_array() || found->empty() || !std::ranges::all_of(*found, is_text)) {
      complain(std::string(name) + " is no list of strings");
    } else {
      value = found->get<std::vector<std::string>>();
    }
  }

  const Json* find(const char* name) {
    known_.emplace_back(name);
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    return found == object_.end() ? nullptr : &*found;
  }

  void complain(std::string what) {
    if (error_.empty()) {
      error_ = std::move(what);
    }
  }

  // At the end: members that nobody asked for are spelling mistakes.
  Result<> finish() {
    for (auto it = object_.begin(); object_.is_object() && it != object_.end(); ++it) {
      if (std::ranges::find(known_, it.key()) == known_.end()) {
        complain("unknown field \"" + it.key() + "\" in " + where_);
      }
    }
    return error_.empty() ? Result<>() : fail(Errc::Invalid, error_);
  }

 private:
  const Json& object_;
  const std::string where_;
  std::vector<std::string> known_;
  std::string error_;
};

bool is_name(std::string_view text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

void read_cluster(Reader& reader, ClusterSpec& spec) {
  reader.number("services", spec.services, std::size_t{0}, kMaxServices);
  reader.number("endpoints", spec.endpoints, std::size_t{0}, kMaxEndpoints);
  reader.number("namespaces", spec.namespaces, std::size_t{1}, kMaxServices);
  reader.number("nodes", spec.nodes, std::size_t{1}, kMaxNodes);
  reader.number("zones", spec.zones, std::size_t{1}, kMaxNodes);
  reader.text("prefix", spec.prefix);
  reader.flag("hints", spec.hints);
  reader.texts("families", spec.families);
  reader.text("node", spec.node);
  reader.texts("nodeAddresses", spec.node_addresses);
  for (const std::string& family : spec.families) {
    if (family != "IPv4" && family != "IPv6") {
      reader.complain("unknown family \"" + family + "\"");
    }
  }
  if (spec.services * spec.endpoints > kMaxPods) {
    reader.complain("more endpoints than 10.128.0.0/9 has addresses");
  }
  if (spec.prefix.empty() || !is_name(spec.prefix) || !is_name(spec.node)) {
    reader.complain("prefix or node is no name");
  }
  for (const std::string& address : spec.node_addresses) {
    if (!net::parse_ip(address)) {
      reader.complain("not an address: \"" + address + "\"");
    }
  }
}

Result<ChurnSpec> parse_churn(const Json& json) {
  ChurnSpec spec;
  Reader reader(json, "churn");
  reader.number("rate", spec.rate, 0.001, kMaxRate);
  reader.number("seconds", spec.seconds, 0.0, kMaxSeconds);
  if (spec.rate == 0) {
    reader.complain("churn has no rate");
  }
  auto read = reader.finish();
  return read ? Result<ChurnSpec>(spec) : tl::unexpected(read.error());
}

Result<RollingSpec> parse_rolling(const Json& json) {
  RollingSpec spec;
  std::string name;
  Reader reader(json, "rolling");
  reader.text("service", name);
  reader.number("seconds", spec.seconds, 0.0, kMaxSeconds);
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) {
    reader.complain("service is not NAMESPACE/NAME");
  } else {
    spec.ns = name.substr(0, slash);
    spec.service = name.substr(slash + 1);
  }
  auto read = reader.finish();
  return read ? Result<RollingSpec>(std::move(spec)) : tl::unexpected(read.error());
}

Result<DrainSpec> parse_drain(const Json& json) {
  DrainSpec spec;
  Reader reader(json, "drain");
  reader.text("zone", spec.zone);
  reader.number("seconds", spec.seconds, 0.0, kMaxSeconds);
  if (spec.zone.empty()) {
    reader.complain("drain has no zone");
  }
  auto read = reader.finish();
  return read ? Result<DrainSpec>(std::move(spec)) : tl::unexpected(read.error());
}

// Reads the part called `name`, when it is there.
template <typename T>
Result<> read_part(
    Reader& reader, const char* name, Result<T> (*parse)(const Json&), std::optional<T>& out) {
  const Json* found = reader.find(name);
  if (found == nullptr) {
    return {};
  }
  auto parsed = parse(*found);
  if (!parsed) {
    return tl::unexpected(parsed.error());
  }
  out = std::move(*parsed);
  return {};
}

}  // namespace

Result<LoadSpec> parse_load_spec(const Json& json) {
  LoadSpec spec;
  Reader reader(json, "the request");
  reader.number("seed", spec.seed, std::uint64_t{0}, UINT64_MAX);
  ClusterSpec cluster;
  read_cluster(reader, cluster);
  if (json.is_object() && json.contains("services")) {
    spec.cluster = std::move(cluster);
  }
  for (const auto& read :
       {read_part(reader, "churn", parse_churn, spec.churn),
        read_part(reader, "rolling", parse_rolling, spec.rolling),
        read_part(reader, "drain", parse_drain, spec.drain),
        reader.finish()}) {
    if (!read) {
      return tl::unexpected(read.error());
    }
  }
  if (!spec.cluster && !spec.churn && !spec.rolling && !spec.drain) {
    return fail(Errc::Invalid, "nothing to do: neither services nor churn, rolling, drain");
  }
  return spec;
}

}  // namespace shunt::test_api
