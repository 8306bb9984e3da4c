#include "packet/packet_case.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace shunt::conformance::packet {
namespace {

using nlohmann::json;

template <typename Value, std::size_t N>
std::string_view name_of(
    const std::array<std::pair<std::string_view, Value>, N>& table, Value wanted) {
  for (const auto& [name, value] : table) {
    if (value == wanted) {
      return name;
    }
  }
  return "?";
}

template <typename Value, std::size_t N>
Value one_of(
    const std::array<std::pair<std::string_view, Value>, N>& table, const std::string& word) {
  for (const auto& [name, value] : table) {
    if (name == word) {
      return value;
    }
  }
  throw std::invalid_argument("not known to this runner: " + word);
}

constexpr std::array<std::pair<std::string_view, Place>, 5> kPlaces{
    {{"pod-local", Place::PodLocal},
     {"pod-remote", Place::PodRemote},
     {"external", Place::External},
     {"node", Place::Node},
     {"localhost", Place::Localhost}}};

constexpr std::array<std::pair<std::string_view, Verdict>, 5> kVerdicts{
    {{"endpoints", Verdict::Endpoints},
     {"reject", Verdict::Reject},
     {"drop", Verdict::Drop},
     {"no-match", Verdict::NoMatch},
     {"not-seen", Verdict::NotSeen}}};

constexpr std::array<std::pair<std::string_view, AgentAction>, 4> kActions{
    {{"", AgentAction::None},
     {"restart", AgentAction::Restart},
     {"down", AgentAction::Down},
     {"down-then-restart", AgentAction::DownThenRestart}}};

net::IpAddress ip_of(const std::string& text) {
  const auto ip = net::parse_ip(text);
  if (!ip) {
    throw std::invalid_argument("not an address: " + text);
  }
  return *ip;
}

net::SocketAddress address_of(const json& value) {
  return {ip_of(value.at("ip")), net::Port{value.value("port", std::uint16_t{0})}};
}

std::vector<net::SocketAddress> endpoints_of(const json& from, const char* field) {
  std::vector<net::SocketAddress> endpoints;
  for (const std::string& text : from.value(field, std::vector<std::string>{})) {
    const auto address = net::parse_socket_address(text);
    if (!address) {
      throw std::invalid_argument("not an endpoint: " + text);
    }
    endpoints.push_back(*address);
  }
  return endpoints;
}

Expectation expectation_of(const json& flow, const std::string& profile) {
  json expect = flow.at("expect");
  if (flow.contains("expectIn") && flow.at("expectIn").contains(profile)) {
    expect = flow.at("expectIn").at(profile);
  }
  Expectation result;
  result.verdict = one_of(kVerdicts, expect.at("verdict"));
  result.endpoints = endpoints_of(expect, "endpoints");
  result.snat_for = endpoints_of(expect, "snatFor");
  if (expect.contains("snat") && expect.at("snat").is_boolean()) {
    result.snat = expect.at("snat").get<bool>();
  }
  return result;
}

Flow flow_of(const json& value, const std::string& profile) {
  Flow flow;
  flow.name = value.value("name", "");
  flow.place = one_of(kPlaces, value.at("from").at("place"));
  flow.from = address_of(value.at("from"));
  flow.assign = value.at("from").value("assign", false);
  flow.to = address_of(value.at("to"));
  const auto protocol = net::parse_protocol(value.at("protocol").get<std::string>());
  if (!protocol) {
    throw std::invalid_argument("not a protocol: " + value.at("protocol").get<std::string>());
  }
  flow.protocol = *protocol;
  flow.expect = expectation_of(value, profile);
  flow.sticky = value.value("selection", "spread") == "sticky";
  flow.same_endpoint_as = value.value("sameEndpointAs", "");
  flow.count = value.value("count", std::size_t{0});
  flow.gap = std::chrono::seconds(value.value("gapSeconds", 0));
  flow.sample = value.value("sample", std::size_t{0});
  flow.needs = value.value("needs", std::vector<std::string>{});
  if (value.contains("probe")) {
    if (value.at("probe") != "stray-segment") {
      throw std::invalid_argument("not known to this runner: " + value.at("probe").dump());
    }
    flow.stray_segment_after = value.at("after");
  }
  return flow;
}

Step step_of(const json& value, const std::string& profile) {
  Step step;
  step.remove = value.value("delete", std::vector<json>{});
  step.apply = value.value("apply", std::vector<json>{});
  step.agent = one_of(kActions, value.value("agent", ""));
  step.remove_rules = value.contains("disturb");
  step.wait = std::chrono::seconds(value.value("waitSeconds", 0));
  step.keep_sending = value.value("keepSending", false);
  if (value.contains("gauges")) {
    const json& expected = value.at("gauges").at("servicesWithoutLocalEndpoints");
    step.gauges = Gauges{expected.at("internal"), expected.at("external")};
  }
  for (const json& flow : value.value("flows", json::array())) {
    step.flows.push_back(flow_of(flow, profile));
  }
  return step;
}

std::vector<net::IpAddress> ips_of(const json& value, const char* field) {
  std::vector<net::IpAddress> ips;
  for (const std::string& text : value.value(field, std::vector<std::string>{})) {
    ips.push_back(ip_of(text));
  }
  return ips;
}

Settings settings_of(const json& value) {
  Settings settings;
  settings.node_name = value.at("nodeName");
  const auto families = value.at("families").get<std::vector<std::string>>();
  settings.ipv4 = std::ranges::find(families, "IPv4") != families.end();
  settings.ipv6 = std::ranges::find(families, "IPv6") != families.end();
  settings.node_addresses = ips_of(value, "nodeAddresses");
  settings.extra_local_addresses = ips_of(value, "extraLocalAddresses");
  settings.service_cidrs = value.value("serviceCIDRs", std::vector<std::string>{});
  settings.node_port_addresses = value.value("nodePortAddresses", std::vector<std::string>{});
  settings.masquerade_all = value.value("masqueradeAll", false);
  settings.localhost_node_ports = value.value("localhostNodePorts", false);
  const json& detect = value.at("detectLocal");
  settings.detect_local_mode = detect.at("mode");
  settings.detect_local_cidrs = detect.value("cidrs", std::vector<std::string>{});
  settings.detect_local_interface = detect.value("interface", "");
  settings.detect_local_prefix = detect.value("prefix", "");
  const json& links = value.at("podLinks");
  settings.bridge_links = links.at("style") == "bridge";
  settings.link_name = settings.bridge_links ? links.at("name") : links.at("prefix");
  return settings;
}

}  // namespace

std::string_view to_string(Place place) { return name_of(kPlaces, place); }

std::string_view to_string(Verdict verdict) { return name_of(kVerdicts, verdict); }

Case parse_case(const json& value, const std::string& profile) {
  Case result;
  result.id = value.at("id");
  result.modes = value.value("modes", std::vector<std::string>{});
  result.needs = value.value("needs", std::vector<std::string>{});
  result.settings = settings_of(value.at("settings"));
  result.nodes = value.value("nodes", std::vector<json>{});
  for (const json& step : value.at("steps")) {
    result.steps.push_back(step_of(step, profile));
  }
  return result;
}

std::vector<net::Cidr> pod_ranges(const Case& packet_case, bool of_this_node) {
  std::vector<net::Cidr> ranges;
  for (const json& node : packet_case.nodes) {
    const bool this_node = node.at("metadata").at("name") == packet_case.settings.node_name;
    if (this_node != of_this_node || !node.contains("spec")) {
      continue;
    }
    for (const std::string& text : node.at("spec").value("podCIDRs", std::vector<std::string>{})) {
      if (const auto cidr = net::parse_cidr(text)) {
        ranges.push_back(*cidr);
      }
    }
  }
  return ranges;
}

}  // namespace shunt::conformance::packet
