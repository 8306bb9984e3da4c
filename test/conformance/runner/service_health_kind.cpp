#include "runner/service_health_kind.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "desired/planner.h"
#include "health/listen_addresses.h"
#include "health/service_health.h"
#include "node/node_port_ranges.h"
#include "node/own_addresses.h"
#include "runner/compare.h"
#include "runner/objects.h"
#include "runner/probed_net.h"
#include "store/object_store.h"

namespace shunt::conformance {
namespace {

using kube::ObjectKey;
using nlohmann::json;

ObjectKey key_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  return {text.substr(0, slash), text.substr(slash + 1)};
}

net::IpAddress ip_of(const std::string& text) {
  const auto ip = net::parse_ip(text.substr(0, text.find('/')));
  if (!ip) {
    throw std::invalid_argument("no address: " + text);
  }
  return *ip;
}

std::vector<net::IpAddress> ips_of(const json& list) {
  std::vector<net::IpAddress> out;
  for (const json& text : list) {
    out.push_back(ip_of(text));
  }
  return out;
}

// What the case says of one answer, in the words of the bank.
json as_json(const http::Response& response, const json& expected) {
  json headers = json::object();
  for (const auto& [name, value] : response.headers) {
    if (expected.at("headers").contains(name)) {
      headers[name] = value;
    }
  }
  return {
      {"status", response.status},
      {"body", json::parse(response.body, nullptr, false)},
      {"headers", headers}};
}

json only_answer(const json& probe) {
  return {
      {"status", probe.at("status")}, {"body", probe.at("body")}, {"headers", probe.at("headers")}};
}

// The health ports of a node of one family.
class Ports {
 public:
  Ports(
      ProbedNet& net,
      net::Family family,
      const std::vector<net::Cidr>& node_ports,
      const std::vector<net::IpAddress>& interfaces)
      : family_(family),
        health_({"edge-a", [healthy = healthy_] { return healthy->load(); }, {}}, net.listeners()) {
    health_.set_addresses(
        family,
        health::listen_addresses(family, node::node_port_ranges(node_ports, family), interfaces));
  }
  void update(const ObjectKey& service, const std::optional<desired::HealthCheck>& wanted) {
    health_.update(family_, service, wanted);
  }
  void commit() { health_.commit(family_); }
  void set_healthy(bool healthy) { *healthy_ = healthy; }

 private:
  net::Family family_;
  std::shared_ptr<std::atomic<bool>> healthy_ = std::make_shared<std::atomic<bool>>(true);
  health::ServiceHealth health_;
};

// On a thread of its own, which may move to another network.
CaseResult judged(
    const std::vector<net::IpAddress>& interfaces,
    const std::function<void(ProbedNet&, std::vector<std::string>&)>& judge) {
  CaseResult result;
  std::exception_ptr broken;
  std::thread thread([&] {
    try {
      auto net = own_net(interfaces);
      if (!net) {
        net = written_net(interfaces);
      }
      judge(*net, result.messages);
    } catch (...) {
      broken = std::current_exception();
    }
  });
  thread.join();
  if (broken) {
    std::rethrow_exception(broken);
  }
  result.outcome = result.messages.empty() ? Outcome::Passed : Outcome::Failed;
  return result;
}

// The bank tells ports and counts apart, as kube-proxy is told of them; to us they come together,
// from one plan. So a count stands for the port it was told with: of a port that is new, none is
// known yet.
class Told {
 public:
  void act(const json& op, Ports& agent) {
    const std::string what = op.at("op");
    if (what == "services") {
      std::map<ObjectKey, net::Port> now;
      for (const auto& [service, port] : op.at("ports").items()) {
        now.emplace(key_of(service), net::Port{port.get<std::uint16_t>()});
      }
      for (const auto& [service, port] : ports_) {
        const auto still = now.find(service);
        if (still == now.end()) {
          agent.update(service, {});
        }
        if (still == now.end() || still->second != port) {
          counts_.erase(service);
        }
      }
      ports_ = std::move(now);
    } else if (what == "endpoints") {
      counts_.clear();
      for (const auto& [service, count] : op.at("counts").items()) {
        if (ports_.contains(key_of(service))) {
          counts_[key_of(service)] = count.get<std::size_t>();
        }
      }
    } else if (what == "proxy-health") {
      agent.set_healthy(op.at("healthy"));
    } else {
      throw std::invalid_argument("not known to this runner: " + what);
    }
    for (const auto& [service, port] : ports_) {
      agent.update(service, desired::HealthCheck{port, counts_[service]});
    }
    agent.commit();
  }

 private:
  std::map<ObjectKey, net::Port> ports_;
  std::map<ObjectKey, std::size_t> counts_;
};

// Where to ask a listener: any address will do for one that has them all.
net::SocketAddress door_of(const std::string& listener) {
  net::SocketAddress at = *net::parse_socket_address(listener);
  if (at.ip == net::IpAddress{at.ip.family, {}}) {
    at.ip = ip_of(at.ip.family == net::Family::IPv4 ? "127.0.0.1" : "::1");
  }
  return at;
}

void probe_all_doors(
    const std::string& where, const json& expect, ProbedNet& net, std::vector<std::string>& out) {
  compare(within(where, "listening"), expect.at("listening"), net.listening(), out);
  for (const json& probe : expect.at("probes")) {
    for (const json& listener : expect.at("listening")) {
      const net::SocketAddress door = door_of(listener);
      if (net::number(door.port) != probe.at("port")) {
        continue;
      }
      const auto answer = net.get(door);
      compare(
          within(where, listener.get<std::string>()),
          only_answer(probe),
          answer ? as_json(*answer, probe) : json("closed"),
          out);
    }
  }
}

// Services and slices to health ports, the way of the sync loop.
class Planner {
 public:
  Planner(std::string node, net::Family family) : node_(std::move(node)), family_(family) {}

  void act(const json& step, Ports& agent) {
    for (const json& object : step.at("apply")) {
      if (object.at("kind") == "Service") {
        store_.upsert(decoded<kube::Service>(object));
      } else {
        store_.upsert(decoded<kube::EndpointSlice>(object));
      }
    }
    for (const json& gone : step.value("delete", json::array())) {
      const ObjectKey key{gone.at("namespace"), gone.at("name")};
      gone.at("kind") == "Service" ? store_.remove_service(key) : store_.remove_slice(key);
    }
    for (const ObjectKey& key : store_.take_changes().services) {
      const auto plan = desired::plan_service(
          store_.service(key).get(), store_.slices_of(key), family_, {{node_, ""}, {}});
      agent.update(key, plan.health_check);
    }
    agent.commit();
  }

 private:
  std::string node_;
  net::Family family_;
  store::ObjectStore store_;
};

}  // namespace

CaseResult run_service_health(const json& test_case) {
  const json& settings = test_case.at("settings");
  const net::Family family = family_of(settings.at("family"));
  std::vector<net::IpAddress> interfaces;
  for (const auto& [device, addresses] : settings.at("interfaces").items()) {
    for (const net::IpAddress& ip : ips_of(addresses)) {
      interfaces.push_back(ip);
    }
  }
  std::vector<net::Cidr> node_ports;
  for (const std::string text : settings.at("nodePortAddresses")) {
    node_ports.push_back(net::parse_cidr(text).value());
  }
  return judged(interfaces, [&](ProbedNet& net, std::vector<std::string>& messages) {
    Ports agent(net, family, node_ports, interfaces);
    Told told;
    std::size_t index = 0;
    for (const json& step : test_case.at("steps")) {
      for (const json& op : step.at("do")) {
        told.act(op, agent);
      }
      probe_all_doors("step " + std::to_string(index++), step.at("expect"), net, messages);
    }
  });
}

CaseResult run_service_health_objects(const json& test_case) {
  const json& settings = test_case.at("settings");
  const net::Family family = family_of(settings.at("family"));
  if (settings.at("nodePortAddresses") != json{"primary"}) {
    throw std::invalid_argument("not known to this runner: nodePortAddresses but primary");
  }
  const auto own = node::own_addresses(ips_of(settings.at("primaryNodeIPs")), {});
  const std::vector<net::IpAddress> interfaces = ips_of(settings.at("nodeAddresses"));
  return judged(interfaces, [&](ProbedNet& net, std::vector<std::string>& messages) {
    Ports agent(net, family, node::primary_ranges(own), interfaces);
    Planner planner(settings.at("nodeName"), family);
    std::size_t index = 0;
    for (const json& step : test_case.at("steps")) {
      planner.act(step, agent);
      const std::string where = "step " + std::to_string(index++);
      for (const json& probe : step.at("expect").at("probes")) {
        const auto answer =
            net.get({ip_of(probe.at("address")), net::Port{probe.at("port").get<std::uint16_t>()}});
        compare(
            within(where, "port " + probe.at("port").dump()),
            probe.at("result") == "closed" ? json("closed") : only_answer(probe),
            answer ? as_json(
                         *answer,
                         probe.contains("headers") ? probe : json{{"headers", json::object()}})
                   : json("closed"),
            messages);
      }
    }
  });
}

}  // namespace shunt::conformance
