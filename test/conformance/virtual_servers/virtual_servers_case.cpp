#include "virtual_servers/virtual_servers_case.h"

#include <stdexcept>

#include "runner/case_file.h"

namespace shunt::conformance::virtual_servers {
namespace {

using nlohmann::json;

net::IpAddress ip_of(const std::string& text) {
  const auto ip = net::parse_ip(text);
  if (!ip) {
    throw std::invalid_argument("not an address: " + text);
  }
  return *ip;
}

std::vector<net::IpAddress> ips_of(const json& texts) {
  std::vector<net::IpAddress> ips;
  for (const json& text : texts) {
    ips.push_back(ip_of(text.get<std::string>()));
  }
  return ips;
}

net::SocketAddress real_of(const json& value) {
  const auto address = net::parse_socket_address(value.at("real").get<std::string>());
  if (!address) {
    throw std::invalid_argument("not a real server: " + value.dump());
  }
  return *address;
}

ServerName server_of(const json& value) {
  return parse_server_name(value.at("server").get<std::string>());
}

CountsByReal connections_of(const json& list) {
  CountsByReal out;
  for (const json& entry : list) {
    out[{server_of(entry), real_of(entry)}] = {
        entry.value("active", 0U), entry.value("inactive", 0U)};
  }
  return out;
}

Step step_of(const json& value) {
  Step step;
  step.remove = value.value("delete", std::vector<json>{});
  step.apply = value.value("apply", std::vector<json>{});
  const std::string agent = text_or(value, "agent", "");
  if (!agent.empty() && agent != "restart") {
    throw std::invalid_argument("not known to this runner: agent " + agent);
  }
  step.restart = agent == "restart";
  step.scheduler = text_or(value, "scheduler", "");
  for (const json& entry : value.value("disturb", json::array())) {
    step.disturb.push_back({server_of(entry), real_of(entry), entry.at("weight")});
  }
  if (value.contains("connections")) {
    step.connections = connections_of(value.at("connections"));
  }
  step.wait = std::chrono::seconds(value.value("waitSeconds", 0));
  const json expect = value.value("expect", json::object());
  if (expect.contains("servers")) {
    step.servers = canonical_table(expect.at("servers"));
  }
  if (expect.contains("bound")) {
    step.bound = ips_of(expect.at("bound"));
  }
  return step;
}

packet::Settings settings_of(const json& value) {
  packet::Settings settings;
  settings.node_name = value.at("nodeName");
  settings.node_port_addresses = value.value("nodePortAddresses", std::vector<std::string>{});
  settings.ipvs_scheduler = value.value("scheduler", "");
  settings.ipvs_exclude_cidrs = value.value("excludeCIDRs", std::vector<std::string>{});
  // The address plan's: no case of this kind is about packets.
  settings.service_cidrs = {"10.112.0.0/16", "fdc0::/112"};
  settings.detect_local_mode = "ClusterCIDR";
  settings.detect_local_cidrs = {"10.64.0.0/14", "fd64::/48"};
  return settings;
}

}  // namespace

Case parse_case(const json& value) {
  Case result;
  result.id = value.at("id");
  result.debatable = value.value("debatable", false);
  const json& settings = value.at("settings");
  const bool ipv6 = settings.at("family") == "IPv6";
  result.family = ipv6 ? net::Family::IPv6 : net::Family::IPv4;
  result.settings = settings_of(settings);
  result.settings.ipv6 = ipv6;
  result.zone = text_or(settings, "zone", "");
  for (const auto& [name, addresses] : settings.at("interfaces").items()) {
    result.interfaces.push_back({name, ips_of(addresses)});
  }
  const json found = value.value("found", json::object());
  result.found_servers = canonical_table(found.value("servers", json::object()));
  result.found_bound = ips_of(found.value("bound", json::array()));
  for (const json& step : value.at("steps")) {
    result.steps.push_back(step_of(step));
  }
  return result;
}

std::vector<net::IpAddress> node_addresses(const Case& test_case) {
  std::vector<net::IpAddress> out;
  for (const Interface& interface : test_case.interfaces) {
    for (const net::IpAddress& ip : interface.addresses) {
      if (!net::is_loopback(ip) && !net::is_link_local(ip)) {
        out.push_back(ip);
      }
    }
  }
  return out;
}

}  // namespace shunt::conformance::virtual_servers
