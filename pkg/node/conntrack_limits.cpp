#include "node/conntrack_limits.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

namespace shunt::node {
namespace {

// kube-proxy's cap; it beats a larger conntrack.min as well.
constexpr std::int64_t kMaxConntrack = 1'048'576;

struct Setting {
  const char* name;
  const char* field;
};
// In the order of writing.
constexpr Setting kSettings[] = {
    {kConntrackMax, "conntrack.maxPerCore"},
    {"nf_conntrack_tcp_timeout_established", "conntrack.tcpEstablishedTimeout"},
    {"nf_conntrack_tcp_timeout_close_wait", "conntrack.tcpCloseWaitTimeout"},
    {"nf_conntrack_tcp_be_liberal", "conntrack.tcpBeLiberal"},
    {"nf_conntrack_udp_timeout", "conntrack.udpTimeout"},
    {"nf_conntrack_udp_timeout_stream", "conntrack.udpStreamTimeout"}};

constexpr unsigned kManyCpus = 65'536;  // more than any kernel knows: the list is broken

std::optional<unsigned> cpu_number(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number < kManyCpus ? std::optional(number) : std::nullopt;
}

std::int64_t conntrack_max(const config::Conntrack& wanted, unsigned cpus) {
  const std::int64_t scaled = std::int64_t{wanted.max_per_core} * cpus;
  return scaled > kMaxConntrack ? kMaxConntrack : std::max<std::int64_t>(scaled, wanted.min);
}

}  // namespace

std::vector<KernelSetting> conntrack_settings(const config::Conntrack& wanted, unsigned cpus) {
  const std::int64_t values[] = {
      wanted.max_per_core > 0 ? conntrack_max(wanted, cpus) : 0,
      wanted.tcp_established_timeout.count(),
      wanted.tcp_close_wait_timeout.count(),
      wanted.tcp_be_liberal ? 1 : 0,
      wanted.udp_timeout.count(),
      wanted.udp_stream_timeout.count()};
  static_assert(std::size(values) == std::size(kSettings));
  std::vector<KernelSetting> out;
  for (std::size_t i = 0; i < std::size(values); ++i) {
    if (values[i] > 0) {
      out.push_back({kSettings[i].name, values[i]});
    }
  }
  return out;
}

std::string_view field_of(const KernelSetting& setting) {
  const auto* found = std::ranges::find(kSettings, setting.name, &Setting::name);
  return found == std::end(kSettings) ? "conntrack" : found->field;
}

std::int64_t conntrack_buckets(std::int64_t max) { return max / 4; }

unsigned cpus_in(std::string_view list) {
  unsigned count = 0;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    const std::size_t dash = part.find('-');
    const auto first = cpu_number(part.substr(0, dash));
    const auto last = dash == part.npos ? first : cpu_number(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return 0;
    }
    count += *last - *first + 1;
  }
  return count;
}

}  // namespace shunt::node
