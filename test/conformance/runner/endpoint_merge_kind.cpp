#include <algorithm>
#include <map>

#include "model/endpoint.h"
#include "runner/compare.h"
#include "runner/kinds.h"
#include "runner/objects.h"
#include "store/object_store.h"

namespace shunt::conformance {
namespace {

using kube::ObjectKey;
using nlohmann::json;

// Endpoints by Service as the agent has them after a step.
using Endpoints = std::map<ObjectKey, model::ServiceEndpoints>;

json as_json(const model::Endpoint& endpoint) {
  return {
      {"address", net::to_string(endpoint.address.ip)},
      {"port", number(endpoint.address.port)},
      {"local", endpoint.local},
      {"ready", endpoint.ready},
      {"serving", endpoint.serving},
      {"terminating", endpoint.terminating},
      {"forZones", endpoint.zone_hints},
      {"forNodes", endpoint.node_hints}};
}

json endpoint_map(const Endpoints& endpoints) {
  json map = json::object();
  for (const auto& [service, of_service] : endpoints) {
    for (const model::PortEndpoints& port : of_service.ports) {
      json list = json::array();
      for (const model::Endpoint& endpoint : port.endpoints) {
        list.push_back(as_json(endpoint));
      }
      map[model::to_string(model::ServicePortName{service, port.port, port.protocol})] = list;
    }
  }
  return map;
}

json local_ready(const Endpoints& endpoints) {
  json map = json::object();
  for (const auto& [service, of_service] : endpoints) {
    if (const std::size_t count = model::local_ready_addresses(of_service); count > 0) {
      map[kube::to_string(service)] = count;
    }
  }
  return map;
}

bool has_udp(const Endpoints& endpoints, const ObjectKey& service) {
  const auto found = endpoints.find(service);
  return found != endpoints.end() &&
         std::any_of(found->second.ports.begin(), found->second.ports.end(), [](const auto& port) {
           return port.protocol == net::Protocol::Udp;
         });
}

json names(const std::set<ObjectKey>& keys) {
  json list = json::array();
  for (const ObjectKey& key : keys) {
    list.push_back(kube::to_string(key));
  }
  return list;
}

// The expectation in the same unit as what was seen.
json in_nanoseconds(const json& expected) {
  json times = json::object();
  for (const auto& [service, list] : expected.items()) {
    times[service] = json::array();
    for (const json& time : list) {
      times[service].push_back(time_ns(time.get<std::string>()));
    }
  }
  return times;
}

// An agent of one family and node, as far as slices concern it.
class Agent {
 public:
  explicit Agent(const json& test_case)
      : family_(family_of(test_case.at("family").get<std::string>())),
        node_(test_case.at("node").get<std::string>()),
        store_(
            started_ns(test_case),
            {.ipv4 = family_ == net::Family::IPv4, .ipv6 = family_ == net::Family::IPv6}) {}

  // Takes the operations of a step and answers with everything that a case can ask for.
  json step(const json& ops) {
    json seen;
    seen["noted"] = json::array();
    for (const json& op : ops) {
      seen["noted"].push_back(apply(op));
    }
    const store::Changes changes = store_.take_changes();
    const Endpoints before = endpoints_;
    update(changes.slices_of);
    seen["endpoints"] = endpoint_map(endpoints_);
    seen["localReady"] = local_ready(endpoints_);
    seen["changedServices"] = names(changes.slices_of);
    seen["udpChanged"] = std::any_of(
        changes.slices_of.begin(), changes.slices_of.end(), [&](const ObjectKey& service) {
          return has_udp(before, service) || has_udp(endpoints_, service);
        });
    seen["trackedServices"] = store_.slice_owners().size();
    seen["triggerTimes"] = json::object();
    for (const auto& [service, times] : changes.trigger_times_ns) {
      seen["triggerTimes"][kube::to_string(service)] = times;
    }
    return seen;
  }

 private:
  static std::int64_t started_ns(const json& test_case) {
    const json settings = test_case.value("settings", json::object());
    return settings.contains("agentStarted") ? time_ns(settings["agentStarted"].get<std::string>())
                                             : 0;
  }

  bool apply(const json& op) {
    const auto slice = decoded<kube::EndpointSlice>(op.at("slice"));
    return op.at("op") == "delete" ? store_.remove_slice(slice->meta.key) : store_.upsert(slice);
  }

  // Only changed Services are merged again, as the agent does.
  void update(const std::set<ObjectKey>& changed) {
    for (const ObjectKey& service : changed) {
      auto merged = model::merge_slices(store_.slices_of(service), family_, node_);
      if (merged.ports.empty()) {
        endpoints_.erase(service);
      } else {
        endpoints_.insert_or_assign(service, std::move(merged));
      }
    }
  }

  net::Family family_;
  std::string node_;
  store::ObjectStore store_;
  Endpoints endpoints_;
};

}  // namespace

CaseResult run_endpoint_merge(const json& test_case, const RunOptions&) {
  CaseResult result;
  Agent agent(test_case);
  std::size_t index = 0;
  for (const json& step : test_case.at("steps")) {
    const std::string where = "step " + std::to_string(index);
    const json seen = agent.step(step.at("ops"));
    for (const auto& [part, expected] : step.at("expect").items()) {
      compare(
          within(where, part),
          part == "triggerTimes" ? in_nanoseconds(expected) : expected,
          seen.value(part, json()),
          result.messages,
          part == "noted" ? Lists::AreOrdered : Lists::AreSets);
    }
    ++index;
  }
  result.outcome = result.messages.empty() ? Outcome::Passed : Outcome::Failed;
  return result;
}

}  // namespace shunt::conformance
