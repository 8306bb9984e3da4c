#include <functional>
#include <map>

#include "config/options.h"
#include "node/conntrack_limits.h"
#include "node/local_traffic.h"
#include "node/node_port_ranges.h"
#include "node/own_addresses.h"
#include "node/ranges.h"
#include "node/start_up.h"
#include "runner/compare.h"
#include "runner/kinds.h"
#include "runner/objects.h"
#include "store/object_store.h"

namespace shunt::conformance {
namespace {

using net::Family;
using nlohmann::json;

constexpr Family kFamilies[] = {Family::IPv4, Family::IPv6};

std::string name_of(Family family) { return std::string(net::to_string(family)); }

template <typename Values>
json texts(const Values& values) {
  json list = json::array();
  for (const auto& value : values) {
    list.push_back(net::to_string(value));
  }
  return list;
}

std::vector<net::Cidr> cidrs_of(const json& list) {
  std::vector<net::Cidr> out;
  for (const json& text : list) {
    out.push_back(net::parse_cidr(text.get<std::string>()).value());
  }
  return out;
}

std::vector<net::IpAddress> ips_of(const json& list) {
  std::vector<net::IpAddress> out;
  for (const json& text : list) {
    if (!text.is_null()) {
      out.push_back(net::parse_ip(text.get<std::string>()).value());
    }
  }
  return out;
}

// The settings of the agent, as its command line gives them.
Result<config::Options> options_from(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"kube-shunt", "--hostname-override=edge-a"});
  std::vector<const char*> argv;
  argv.reserve(arguments.size());
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  auto invocation = config::parse_command_line(static_cast<int>(argv.size()), argv.data());
  if (!invocation) {
    return tl::unexpected(invocation.error());
  }
  return std::move(invocation->options);
}

json node_port_addresses(const json& input) {
  const std::vector<net::Cidr> setting = cidrs_of(input.at("nodePortAddresses"));
  json seen;
  for (const Family family : kFamilies) {
    const auto ranges = node::node_port_ranges(setting, family);
    std::vector<net::IpAddress> inside;
    for (const auto& [name, addresses] : input.at("interfaces").items()) {
      for (const json& address : addresses) {
        const std::string with_prefix = address;
        const auto ip = net::parse_ip(with_prefix.substr(0, with_prefix.find('/'))).value();
        if (net::any_contains(ranges, ip)) {
          inside.push_back(ip);
        }
      }
    }
    seen[name_of(family)] = {{"matchAll", node::match_all(ranges)}, {"addresses", texts(inside)}};
  }
  return seen;
}

json node_port_primary(const json& input) {
  const auto options =
      options_from({"--nodeport-addresses=" + input.at("nodePortAddresses")[0].get<std::string>()});
  if (!options || options->node_port_addresses.kind != config::NodePortAddresses::Kind::Primary) {
    return {{"ranges", "the setting was not taken for primary"}};
  }
  const auto own = node::own_addresses(ips_of(input.at("nodeIPs")), options->bind_address);
  return {{"ranges", texts(node::primary_ranges(own))}};
}

json node_port_loopback(const json& input) {
  const std::vector<net::Cidr> setting = cidrs_of(input.at("nodePortAddresses"));
  json seen;
  for (const Family family : kFamilies) {
    seen[name_of(family)] = node::include_ipv4_loopback(node::node_port_ranges(setting, family));
  }
  return seen;
}

json as_json(const node::LocalTraffic& traffic) {
  using Method = node::LocalTraffic::Method;
  switch (traffic.method) {
    case Method::None:
      break;
    case Method::SourceRange:
      return {{"method", "source-range"}, {"range", net::to_string(traffic.range.value())}};
    case Method::InputInterface:
      return {{"method", "input-interface"}, {"name", traffic.name}};
    case Method::InputInterfacePrefix:
      return {{"method", "input-interface-prefix"}, {"name", traffic.name}};
  }
  return {{"method", "none"}};
}

json detect_local(const json& input) {
  const json& config = input.at("config");
  std::string cidrs;
  for (const std::string& cidr : config.value("clusterCIDRs", std::vector<std::string>{})) {
    cidrs += (cidrs.empty() ? "" : ",") + cidr;
  }
  const auto options = options_from(
      {"--detect-local-mode=" + config.value("mode", ""),
       "--cluster-cidr=" + cidrs,
       "--pod-bridge-interface=" + config.value("bridgeInterface", ""),
       "--pod-interface-name-prefix=" + config.value("interfaceNamePrefix", "")});
  const auto pod_cidrs = input.at("nodePodCIDRs").get<std::vector<std::string>>();
  json seen;
  for (const Family family : kFamilies) {
    // Settings that are refused start no agent, which tells no traffic.
    seen[name_of(family)] =
        as_json(options ? node::local_traffic(*options, pod_cidrs, family) : node::LocalTraffic{});
  }
  return seen;
}

json own_addresses(const json& input) {
  const auto options =
      options_from({"--bind-address=" + input.at("bindAddress").get<std::string>()});
  const auto own =
      node::own_addresses(ips_of(input.at("nodeAddresses")), options.value().bind_address);
  return {
      {"primaryFamily", net::to_string(own.primary)},
      {"IPv4", net::to_string(own.ipv4)},
      {"IPv6", net::to_string(own.ipv6)}};
}

std::shared_ptr<const kube::Node> node_from(json parts) {
  parts["apiVersion"] = "v1";
  parts["kind"] = "Node";
  parts["metadata"]["name"] = "edge-a";
  return decoded<kube::Node>(parts);
}

json node_object_addresses(const json& input) {
  const auto node = node_from({{"status", {{"addresses", input.at("addresses")}}}});
  return {{"nodeAddresses", texts(node::addresses_of(*node))}};
}

// The Node as an observation of "node-wait" and "node-change" has it.
void observe(const json& observation, store::ObjectStore& store) {
  if (!observation.at("exists").get<bool>()) {
    store.remove_node();
    return;
  }
  json addresses = json::array();
  for (const json& address : observation.at("addresses")) {
    addresses.push_back({{"type", "InternalIP"}, {"address", address}});
  }
  store.upsert(node_from(
      {{"spec", {{"podCIDRs", observation.at("podCIDRs")}}},
       {"status", {{"addresses", addresses}}}}));
}

json node_wait(const json& input) {
  using Verdict = node::StartUpWait::Verdict;
  node::StartUpWait wait(input.at("needsPodCIDRs"), {});
  store::ObjectStore store;
  Clock::time_point now{};
  Verdict verdict = Verdict::Wait;
  for (const json& observation : input.at("observations")) {
    observe(observation, store);
    if (verdict = wait.look(store.node(), now); verdict != Verdict::Wait) {
      break;
    }
    now += std::chrono::seconds(1);
  }
  while (verdict == Verdict::Wait) {
    now = wait.due().value();
    verdict = wait.look(store.node(), now);
  }
  if (verdict != Verdict::Start) {
    return {
        {"outcome", "fail"},
        {"because", verdict == Verdict::NodeMissing ? "node-missing" : "pod-ranges-missing"}};
  }
  const kube::Node* node = store.node();
  return {
      {"outcome", "start"},
      {"nodeAddresses", node != nullptr ? texts(node::addresses_of(*node)) : json::array()},
      {"podCIDRs", node != nullptr ? json(node->pod_cidrs) : json::array()}};
}

json node_change(const json& input) {
  store::ObjectStore store;
  observe(input.at("before"), store);
  const std::vector<std::string> before = store.node()->pod_cidrs;
  observe(input.at("after"), store);
  return {{"restart", node::pod_cidrs_changed(input.at("needsPodCIDRs"), before, store.node())}};
}

json topology_labels(const json& input) {
  store::ObjectStore store;
  json seen = json::array();
  for (const json& labels : input.at("labelSets")) {
    store.upsert(node_from({{"metadata", {{"labels", labels}}}}));
    json kept = json::object();
    if (const std::string zone = node::zone_of(store.node()); !zone.empty()) {
      kept[kube::kZoneLabel] = zone;
    }
    seen.push_back(kept);
  }
  return {{"labels", seen}};
}

json service_ranges(const json& input) {
  store::ObjectStore store;
  json seen = json::array();
  for (const json& step : input.at("steps")) {
    const json set = step.value("set", json::object());
    for (const auto& [name, cidrs] : set.items()) {
      store.upsert(decoded<kube::ServiceCidr>(
          {{"apiVersion", "networking.k8s.io/v1"},
           {"kind", "ServiceCIDR"},
           {"metadata", {{"name", name}}},
           {"spec", {{"cidrs", cidrs}}}}));
    }
    for (const std::string& name : step.value("remove", std::vector<std::string>{})) {
      store.remove_service_cidr({"", name});
    }
    json now;
    for (const Family family : kFamilies) {
      now[name_of(family)] = texts(node::of_family(store.service_cidrs(), family));
    }
    seen.push_back(now);
  }
  return {{"steps", seen}};
}

config::Conntrack limits_of(const json& input) {
  if (input.value("stockConfiguration", false)) {
    return options_from({}).value().conntrack;
  }
  const auto seconds = [&](const char* field) {
    return std::chrono::seconds(input.value(field, 0));
  };
  config::Conntrack wanted;
  wanted.max_per_core = input.value("maxPerCore", 0);
  wanted.min = input.value("min", 0);
  wanted.tcp_established_timeout = seconds("tcpEstablishedSeconds");
  wanted.tcp_close_wait_timeout = seconds("tcpCloseWaitSeconds");
  wanted.tcp_be_liberal = input.value("tcpBeLiberal", false);
  wanted.udp_timeout = seconds("udpSeconds");
  wanted.udp_stream_timeout = seconds("udpStreamSeconds");
  return wanted;
}

json tracking_limits(const json& input) {
  static const std::map<std::string, const char*> words{
      {"nf_conntrack_max", "max"},
      {"nf_conntrack_tcp_timeout_established", "tcpEstablishedSeconds"},
      {"nf_conntrack_tcp_timeout_close_wait", "tcpCloseWaitSeconds"},
      {"nf_conntrack_tcp_be_liberal", "tcpBeLiberal"},
      {"nf_conntrack_udp_timeout", "udpSeconds"},
      {"nf_conntrack_udp_timeout_stream", "udpStreamSeconds"}};
  json writes = json::object();
  for (const auto& setting : node::conntrack_settings(limits_of(input), input.value("cores", 1U))) {
    writes[words.at(setting.name)] = setting.value;
  }
  return {{"writes", writes}};
}

const std::map<std::string, std::function<json(const json&)>>& subjects() {
  static const std::map<std::string, std::function<json(const json&)>> all{
      {"nodeport-addresses", node_port_addresses},
      {"nodeport-primary", node_port_primary},
      {"nodeport-loopback", node_port_loopback},
      {"detect-local", detect_local},
      {"own-addresses", own_addresses},
      {"node-object-addresses", node_object_addresses},
      {"node-wait", node_wait},
      {"node-change", node_change},
      {"topology-labels", topology_labels},
      {"service-ranges", service_ranges},
      {"tracking-limits", tracking_limits}};
  return all;
}

// Members that the case does not name may be there as well.
json only_members_of(const json& expected, json seen) {
  for (auto it = seen.begin(); it != seen.end();) {
    it = expected.contains(it.key()) ? std::next(it) : seen.erase(it);
  }
  return seen;
}

}  // namespace

CaseResult run_node_config(const json& test_case, const RunOptions&) {
  const std::string subject = test_case.at("subject");
  const auto found = subjects().find(subject);
  if (found == subjects().end()) {
    return {Outcome::Skipped, {"no runner for the subject " + subject}};
  }
  json expect = test_case.at("expect");
  json seen = found->second(test_case.at("input"));
  if (expect.value("partial", false)) {
    expect.erase("partial");
    seen["writes"] = only_members_of(expect.at("writes"), seen.at("writes"));
  }
  CaseResult result;
  if (expect.contains("steps") && expect["steps"].size() == seen["steps"].size()) {
    for (std::size_t i = 0; i < expect["steps"].size(); ++i) {
      const std::string where = within(subject, "step " + std::to_string(i));
      compare(where, expect["steps"][i], seen["steps"][i], result.messages);
    }
  } else {
    // The first address is the primary one, and labels follow each other.
    const bool ordered = subject == "node-object-addresses" || subject == "topology-labels";
    const Lists lists = ordered ? Lists::AreOrdered : Lists::AreSets;
    compare(subject, expect, seen, result.messages, lists);
  }
  result.outcome = result.messages.empty() ? Outcome::Passed : Outcome::Failed;
  return result;
}

}  // namespace shunt::conformance
