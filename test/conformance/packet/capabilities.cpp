#include "packet/capabilities.h"

#include <algorithm>

namespace shunt::conformance::packet {
namespace {

using nlohmann::json;

std::vector<std::string> cluster_ips(const json& spec) {
  std::vector<std::string> ips = spec.value("clusterIPs", std::vector<std::string>{});
  ips.push_back(spec.value("clusterIP", ""));
  return ips;
}

std::vector<std::string> balancer_ips(const json& service) {
  std::vector<std::string> ips;
  const json ingress = service.value("/status/loadBalancer/ingress"_json_pointer, json::array());
  for (const json& entry : ingress) {
    ips.push_back(entry.value("ip", ""));
  }
  return ips;
}

}  // namespace

std::optional<std::string> Abilities::lacking(const Capabilities& needed) const {
  for (const std::string& word : needed) {
    if (const auto found = machine_lacks.find(word); found != machine_lacks.end()) {
      return "needs " + word + ", and " + found->second;
    }
    if (agent && !agent->contains(word)) {
      return "needs " + word;
    }
  }
  return std::nullopt;
}

ServiceIndex::ServiceIndex(const Case& packet_case)
    : node_addresses_(packet_case.settings.node_addresses),
      of_case_(packet_case.needs.begin(), packet_case.needs.end()) {
  const std::vector<net::IpAddress>& extra = packet_case.settings.extra_local_addresses;
  node_addresses_.insert(node_addresses_.end(), extra.begin(), extra.end());
  for (const Step& step : packet_case.steps) {
    if (step.keep_sending) {
      of_case_.insert("stale-udp");
    }
    for (const json& object : step.apply) {
      if (object.at("kind") == "Service") {
        add(object);
      }
    }
  }
}

void ServiceIndex::add(const json& service) {
  const json& spec = service.at("spec");
  Capabilities features;
  if (spec.value("sessionAffinity", "None") == "ClientIP") {
    features.insert("session-affinity");
  }
  auto add_address = [&](const std::string& text, const char* capability) {
    if (const auto ip = net::parse_ip(text)) {
      Capabilities& needed = addresses_[*ip];
      needed.insert(features.begin(), features.end());
      needed.insert(capability);
    }
  };
  for (const std::string& ip : cluster_ips(spec)) {
    add_address(ip, "cluster-ip");
  }
  for (const std::string& ip : spec.value("externalIPs", std::vector<std::string>{})) {
    add_address(ip, "external-ip");
  }
  for (const std::string& ip : balancer_ips(service)) {
    add_address(ip, "load-balancer");
    if (!spec.value("loadBalancerSourceRanges", json::array()).empty()) {
      add_address(ip, "source-ranges");
    }
  }
  for (const json& port : spec.value("ports", json::array())) {
    const auto protocol = net::parse_protocol(port.value("protocol", "TCP"));
    const auto number = port.value("nodePort", std::uint16_t{0});
    if (protocol && number != 0) {
      Capabilities& needed = node_ports_[{*protocol, net::Port{number}}];
      needed.insert(features.begin(), features.end());
      needed.insert("node-port");
    }
  }
}

Capabilities ServiceIndex::needed_by_destination(const Flow& flow) const {
  if (const auto found = addresses_.find(flow.to.ip); found != addresses_.end()) {
    return found->second;
  }
  const bool to_node = net::is_loopback(flow.to.ip) ||
                       std::ranges::find(node_addresses_, flow.to.ip) != node_addresses_.end();
  const auto port = node_ports_.find({flow.protocol, flow.to.port});
  if (to_node && port != node_ports_.end()) {
    return port->second;
  }
  return {};  // nobody's service: even the smallest agent must leave it alone, or drop it
}

Capabilities ServiceIndex::needed_by(const Flow& flow, const Step& step) const {
  Capabilities needed = needed_by_destination(flow);
  needed.insert(of_case_.begin(), of_case_.end());
  needed.insert(flow.needs.begin(), flow.needs.end());
  if (!flow.stray_segment_after.empty()) {
    needed.insert("stray-segments");
  }
  if (step.remove_rules) {
    needed.insert("self-heal");
  }
  return needed;
}

}  // namespace shunt::conformance::packet
