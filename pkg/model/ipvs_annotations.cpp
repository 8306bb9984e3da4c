#include "model/ipvs_annotations.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/trimmed.h"
#include "kube/decoded.h"

namespace shunt::model {
namespace {

constexpr std::string_view kBlank = " \t\n\v\f\r";
constexpr std::size_t kMaxComplaints =
    8;  // of one annotation: each becomes a log line and an Event

// The kernel's modules are called ip_vs_<name>.
constexpr std::string_view kSchedulers[] = {
    "rr", "wrr", "lc", "wlc", "sh", "mh", "sed", "nq", "dh", "lblc", "lblcr", "fo", "ovf"};

std::string about(std::string_view annotation, std::string_view what) {
  std::string out("annotation ");
  out.append(annotation).append(": ").append(what);
  return out;
}

std::string quoted(std::string_view foreign) {
  std::string out("\"");
  out.append(kube::excerpt(foreign)).append("\"");
  return out;
}

std::string scheduler(std::string_view text, std::vector<std::string>& issues) {
  const std::string_view name = trimmed(text, kBlank);
  if (name.empty() || std::ranges::find(kSchedulers, name) != std::end(kSchedulers)) {
    return std::string(name);
  }
  issues.push_back(about(
      kube::kIpvsSchedulerAnnotation,
      quoted(name).append(" is no scheduler of IPVS, the configured one is used")));
  return {};
}

std::optional<std::uint16_t> parse_weight(std::string_view text) {
  std::uint16_t weight = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, weight);
  return error == std::errc() && stop == end ? std::optional(weight) : std::nullopt;
}

// Reads the parts of one annotation; what is wrong is counted, and told of the first few.
class WeightsReader {
 public:
  explicit WeightsReader(std::vector<std::string>& issues) : issues_(issues) {}

  EndpointWeights read(std::string_view text) {
    std::string_view rest = text.substr(0, kube::kMaxIpvsWeights);
    std::size_t parts = 0;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      const bool cut_off = comma == std::string_view::npos && text.size() > kube::kMaxIpvsWeights;
      const std::string_view part = trimmed(rest.substr(0, comma), kBlank);
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      if (cut_off) {
        complain(
            "is longer than " + std::to_string(kube::kMaxIpvsWeights) +
            " bytes, the rest is ignored");
      } else if (!part.empty() && ++parts > kMaxWeightParts) {
        complain(
            "has more than " + std::to_string(kMaxWeightParts) + " parts, the rest is ignored");
        break;
      } else if (!part.empty()) {
        read_part(part);
      }
    }
    if (wrong_ > kMaxComplaints) {
      tell(std::to_string(wrong_ - kMaxComplaints) + " more complaints like these");
    }
    return std::move(weights_);
  }

 private:
  void read_part(std::string_view part) {
    const std::size_t equals = part.find('=');
    const auto weight = equals == std::string_view::npos
                            ? std::nullopt
                            : parse_weight(trimmed(part.substr(equals + 1), kBlank));
    if (!weight) {
      complain(quoted(part).append(" is no SELECTOR=WEIGHT with a weight from 0 to 65535"));
      return;
    }
    const std::string_view selector = trimmed(part.substr(0, equals), kBlank);
    const std::size_t colon = selector.find(':');
    const std::string_view kind = selector.substr(0, colon);
    const std::string_view name =
        colon == std::string_view::npos ? std::string_view() : selector.substr(colon + 1);
    if (selector == "*") {
      set(weights_.all, *weight, selector);
    } else if (selector == "local") {
      set(weights_.local, *weight, selector);
    } else if (kind == "zone" && !name.empty()) {
      set(weights_.zones, std::string(name), *weight, selector);
    } else if (kind == "node" && !name.empty()) {
      set(weights_.nodes, std::string(name), *weight, selector);
    } else if (const auto ip = net::parse_ip(name); kind == "address" && ip) {
      set(weights_.addresses, *ip, *weight, selector);
    } else {
      complain(quoted(part).append(
          " selects nothing: zone:NAME, node:NAME, address:IP, local and * do"));
    }
  }

  void set(std::optional<std::uint16_t>& held, std::uint16_t weight, std::string_view selector) {
    if (held.has_value()) {
      complain_twice(selector);
    }
    held = weight;
  }
  template <typename Map, typename Key>
  void set(Map& held, const Key& key, std::uint16_t weight, std::string_view selector) {
    if (!held.insert_or_assign(key, weight).second) {
      complain_twice(selector);
    }
  }

  void complain_twice(std::string_view selector) {
    complain(quoted(selector).append(" is given twice, the later one counts"));
  }
  void complain(std::string_view what) {
    if (++wrong_ <= kMaxComplaints) {
      tell(what);
    }
  }
  void tell(std::string_view what) { issues_.push_back(about(kube::kIpvsWeightsAnnotation, what)); }

  std::vector<std::string>& issues_;
  EndpointWeights weights_;
  std::size_t wrong_ = 0;
};

}  // namespace

std::uint16_t EndpointWeights::of(
    const net::IpAddress& ip, std::string_view node, bool is_local, std::string_view zone) const {
  if (const auto found = addresses.find(ip); found != addresses.end()) {
    return found->second;
  }
  if (const auto found = nodes.find(node); found != nodes.end()) {
    return found->second;
  }
  if (is_local && local) {
    return *local;
  }
  if (const auto found = zones.find(zone); found != zones.end()) {
    return found->second;
  }
  return all.value_or(1);
}

std::optional<IpvsAnnotations> ipvs_annotations(
    const kube::Service& service, std::vector<std::string>& issues) {
  if (service.ipvs_scheduler.empty() && service.ipvs_weights.empty()) {
    return std::nullopt;
  }
  IpvsAnnotations out;
  out.scheduler = scheduler(service.ipvs_scheduler, issues);
  out.weights = WeightsReader(issues).read(service.ipvs_weights);
  return out == IpvsAnnotations{} ? std::nullopt : std::optional(std::move(out));
}

}  // namespace shunt::model
