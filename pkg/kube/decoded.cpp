#include "kube/decoded.h"

#include <utility>

#include "kube/findings.h"
#include "net/cidr.h"
#include "net/ip_address.h"

namespace shunt::kube {

std::optional<EventType> parse_event_type(std::string_view text) {
  static constexpr std::pair<std::string_view, EventType> kTypes[] = {
      {"ADDED", EventType::Added},
      {"MODIFIED", EventType::Modified},
      {"DELETED", EventType::Deleted},
      {"BOOKMARK", EventType::Bookmark},
      {"ERROR", EventType::Error},
  };
  for (const auto& [name, type] : kTypes) {
    if (name == text) {
      return type;
    }
  }
  return std::nullopt;
}

std::vector<DecodeIssue> issues_of(
    const Findings& findings,
    bool with_remarks,
    const ObjectKey& key,
    const std::string& nameless) {
  std::vector<DecodeIssue> issues;
  if (!findings.mistake && (findings.remarks.empty() || !with_remarks)) {
    return issues;
  }
  const std::string name = key.name.empty() ? nameless : to_string(key);
  if (findings.mistake) {
    issues.push_back({.object = name, .what = *findings.mistake, .object_lost = true});
    return issues;
  }
  for (const std::string& remark : findings.remarks) {
    issues.push_back({.object = name, .what = remark, .object_lost = false});
  }
  return issues;
}

namespace {

void remark_ranges(
    std::string_view field, const std::vector<std::string>& ranges, std::vector<std::string>& out) {
  for (std::size_t i = 0; i < ranges.size() && out.size() < kMaxOddities; ++i) {
    if (!net::parse_cidr(ranges[i])) {
      std::string what(field);
      what.append("[").append(std::to_string(i)).append("]: not a range of addresses: \"");
      what.append(excerpt(ranges[i])).append("\"");
      out.push_back(std::move(what));
    }
  }
}

// The other types are names.
bool must_be_ip(const NodeAddress& address) {
  return address.type == "InternalIP" || address.type == "ExternalIP";
}

}  // namespace

// FQDN is a type as well, if none that a proxy can use. One without a type is nobody's.
std::vector<std::string> oddities(const EndpointSlice& slice) {
  const std::string& type = slice.address_type;
  if (minds_addresses(slice) || type == "FQDN" || type.empty()) {
    return {};
  }
  return {"addressType: unknown: \"" + excerpt(type) + "\""};
}

std::vector<std::string> oddities(const Node& node) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < node.addresses.size() && out.size() < kMaxOddities; ++i) {
    const NodeAddress& address = node.addresses[i];
    if (must_be_ip(address) && !net::parse_ip(address.address)) {
      std::string what("status.addresses[");
      what.append(std::to_string(i)).append("]: not an IP address: \"");
      what.append(excerpt(address.address)).append("\"");
      out.push_back(std::move(what));
    }
  }
  remark_ranges("spec.podCIDRs", node.pod_cidrs, out);
  return out;
}

std::vector<std::string> oddities(const ServiceCidr& service_cidr) {
  std::vector<std::string> out;
  remark_ranges("spec.cidrs", service_cidr.cidrs, out);
  return out;
}

std::string excerpt(std::string_view foreign, std::size_t limit) {
  std::string out(foreign.substr(0, limit));
  for (char& c : out) {
    if (c < ' ' || c > '~') {
      c = '?';
    }
  }
  if (foreign.size() > limit) {
    out += "...";
  }
  return out;
}

}  // namespace shunt::kube
