#include "backend/leftovers/iptables_tool.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>

#include "backend/leftovers/kube_proxy_names.h"
#include "backend/leftovers/save_reader.h"
#include "base/subprocess.h"

namespace shunt::backend::leftovers {
namespace {

// 100,000 Services of kube-proxy's are some 100 MB of text.
constexpr std::size_t kMaxListing = std::size_t{512} << 20;
constexpr std::chrono::minutes kTimeout{2};
// For the lock that all users of the legacy variant share.
constexpr char kLockSeconds[] = "5";

std::string program_stem(net::Family family) {
  return family == net::Family::IPv4 ? "iptables" : "ip6tables";
}

std::string_view kind_name(Variant::Kind kind) {
  return kind == Variant::Kind::Nft ? "nft" : "legacy";
}

// In PATH, or where distributions put it: a daemon's PATH often lacks the sbin directories.
std::optional<std::string> find_program(const std::string& name) {
  const char* path = ::secure_getenv("PATH");
  std::string directories = path == nullptr ? "" : path;
  directories += ":/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin";
  std::string_view rest = directories;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), directory.size() + 1));
    if (!directory.starts_with('/')) {
      continue;
    }
    std::string candidate(directory);
    candidate.append("/").append(name);
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return std::nullopt;
}

// What a program says of its version; "" when it says nothing.
std::string said_of_version(const std::string& program, int stop_fd) {
  Command command;
  command.argv = {program, "-V"};
  command.timeout = std::chrono::seconds(5);
  command.stop_fd = stop_fd;
  auto answer = run(command);
  return answer && answer->exit_code == 0 ? std::move(answer->out) : "";
}

bool is_nft(std::string_view said) { return said.find("nf_tables") != std::string_view::npos; }

// Whether a program without a variant in its name is of this one.
bool is_of_kind(const std::string& program, Variant::Kind kind, int stop_fd) {
  const std::string said = said_of_version(program, stop_fd);
  return !said.empty() && is_nft(said) == (kind == Variant::Kind::Nft);
}

std::optional<std::string> find_variant(
    const Variant& variant, std::string_view verb, int stop_fd) {
  std::string name = to_string(variant);
  if (auto found = find_program(name.append("-").append(verb))) {
    return found;
  }
  name = program_stem(variant.family);
  auto plain = find_program(name.append("-").append(verb));
  return plain && is_of_kind(*plain, variant.kind, stop_fd) ? plain : std::nullopt;
}

Result<std::string> finished(const std::string& program, Result<CommandOutput> output) {
  if (!output) {
    return tl::unexpected(output.error());
  }
  if (output->exit_code != 0) {
    std::string_view why = output->diagnostics;
    why = why.substr(0, why.find_last_not_of('\n') + 1);
    std::string what = program + " failed: ";
    what.append(why.empty() ? "exit code " + std::to_string(output->exit_code) : presentable(why));
    // xtables' own word for "not your fault" (RESOURCE_PROBLEM).
    constexpr int kResourceProblem = 4;
    const bool again = output->exit_code == kResourceProblem || output->exit_code > 128;
    return fail(again ? Errc::Again : Errc::Invalid, std::move(what));
  }
  return std::move(output->out);
}

// A kernel without the legacy variant has no such file, and one that nobody used it on an empty
// one.
std::vector<std::string> legacy_tables(net::Family family) {
  std::ifstream file(
      family == net::Family::IPv4 ? "/proc/thread-self/net/ip_tables_names"
                                  : "/proc/thread-self/net/ip6_tables_names");
  std::vector<std::string> out;
  std::string name;
  while (std::getline(file, name)) {
    if (std::ranges::find(kTables, name) != std::end(kTables)) {
      out.push_back(name);
    }
  }
  return out;
}

}  // namespace

std::string to_string(const Variant& variant) {
  return program_stem(variant.family).append("-").append(kind_name(variant.kind));
}

Result<std::vector<std::string>> candidate_tables(
    Wire& wire, const Variant& variant, IptablesMode mode) {
  if (variant.kind == Variant::Kind::Legacy) {
    return legacy_tables(variant.family);
  }
  const auto found = wire.nft_tables_with(
      variant.family, [mode](auto table, auto chain) { return is_leftover(table, chain, mode); });
  return found.map([](const std::set<std::string>& names) {
    return std::vector<std::string>(names.begin(), names.end());
  });
}

Result<IptablesTool> IptablesTool::find(const Variant& variant, int stop_fd) {
  const auto save = find_variant(variant, "save", stop_fd);
  const auto restore = find_variant(variant, "restore", stop_fd);
  if (!save || !restore) {
    return fail(Errc::NotFound, to_string(variant) + " is not installed");
  }
  IptablesTool tool;
  tool.save_ = *save;
  tool.restore_ = *restore;
  tool.stop_fd_ = stop_fd;
  return tool;
}

Variant::Kind plain_variant(net::Family family) {
  const auto plain = find_program(program_stem(family));
  const std::string said = plain ? said_of_version(*plain, -1) : "";
  return said.empty() || is_nft(said) ? Variant::Kind::Nft : Variant::Kind::Legacy;
}

std::optional<IptablesVersion> parse_iptables_version(std::string_view said) {
  const std::size_t at = said.find(" v");
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  said.remove_prefix(at + 2);
  IptablesVersion out;
  for (unsigned* part : {&out.major, &out.minor, &out.patch}) {
    const char* const end = said.data() + said.size();
    const auto read = std::from_chars(said.data(), end, *part);
    if (read.ec != std::errc()) {
      return part == &out.patch ? std::optional(out) : std::nullopt;
    }
    said.remove_prefix(static_cast<std::size_t>(read.ptr - said.data()));
    if (!said.starts_with('.')) {
      return part == &out.major ? std::nullopt : std::optional(out);
    }
    said.remove_prefix(1);
  }
  return out;
}

Result<IptablesVersion> IptablesTool::version() const {
  if (const auto version = parse_iptables_version(said_of_version(restore_, stop_fd_))) {
    return *version;
  }
  return fail(Errc::Unsupported, restore_ + " does not say its version");
}

Result<std::string> IptablesTool::save(std::string_view table) const {
  Command command;
  command.argv = {save_, "-t", std::string(table)};
  command.max_output = kMaxListing;
  command.timeout = kTimeout;
  command.stop_fd = stop_fd_;
  return finished(save_, run(command));
}

Result<> IptablesTool::restore(const std::string& text) const {
  Command command;
  command.argv = {restore_, "--wait", kLockSeconds, "--noflush"};
  command.input = text;
  command.timeout = kTimeout;
  command.stop_fd = stop_fd_;
  return finished(restore_, run(command)).map([](const std::string&) {});
}

}  // namespace shunt::backend::leftovers
