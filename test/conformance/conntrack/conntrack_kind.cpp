#include "conntrack/conntrack_kind.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/conntrack/reconciler.h"
#include "backend/conntrack/wire.h"
#include "conntrack/tracked.h"
#include "desired/planner.h"
#include "netns/process.h"
#include "runner/objects.h"
#include "store/object_store.h"
#include "sync/flow_handover.h"

namespace shunt::conformance {
namespace {

using backend::conntrack::Flow;
using nlohmann::json;

// The address plan's node under test.
constexpr char kNodeAddresses[] =
    "addr add 10.80.0.10/32 dev lo\n"
    "addr add 10.80.1.10/32 dev lo\n"
    "addr add fd80::10/128 dev lo nodad\n"
    "addr add fd80:1::10/128 dev lo nodad\n";
constexpr std::chrono::seconds kPatience{10};

net::SocketAddress address(const json& direction, const char* ip, const char* port) {
  const auto parsed = net::parse_ip(direction.at(ip).get<std::string>());
  if (!parsed) {
    throw std::runtime_error("no address: " + direction.dump());
  }
  return {*parsed, net::Port{direction.at(port).get<std::uint16_t>()}};
}

Flow flow_of(const json& entry) {
  const auto protocol = net::parse_protocol(entry.at("protocol").get<std::string>());
  if (!protocol) {
    throw std::runtime_error("no protocol: " + entry.dump());
  }
  const auto direction = [&](const char* name) {
    const json& part = entry.at(name);
    return backend::conntrack::Direction{
        address(part, "src", "sport"), address(part, "dst", "dport")};
  };
  return {static_cast<std::uint8_t>(*protocol), direction("original"), direction("reply"), true};
}

// An agent of one family whose rules always go into the kernel at once.
class Agent {
 public:
  explicit Agent(const json& test_case)
      : family_(family_of(test_case.at("family").get<std::string>())),
        view_{{test_case.at("node").get<std::string>(), ""}, std::nullopt} {
    delta_.everything = true;
    auto table = backend::conntrack::KernelFlowTable::open();
    if (!table) {
      throw std::runtime_error(table.error().what);
    }
    reconciler_ =
        std::make_unique<backend::conntrack::Reconciler>(std::move(*table), [] { return 0.0; });
    reconciler_->start();
  }

  void apply(const json& objects) {
    for (const json& object : objects) {
      if (object.at("kind") == "Service") {
        (void)store_.upsert(decoded<kube::Service>(object));  // judged by its dirty key
      } else if (object.at("kind") == "EndpointSlice") {
        (void)store_.upsert(decoded<kube::EndpointSlice>(object));
      }
    }
  }
  void remove(const json& objects) {
    for (const json& object : objects) {
      const json& meta = object.contains("metadata") ? object.at("metadata") : object;
      const kube::ObjectKey key{meta.value("namespace", ""), meta.at("name").get<std::string>()};
      if (object.at("kind") == "Service") {
        (void)store_.remove_service(key);
      } else if (object.at("kind") == "EndpointSlice") {
        (void)store_.remove_slice(key);
      }
    }
  }

  // Plans what is dirty, hands it over and waits until the table was dealt with.
  void sync() {
    std::vector<desired::Conflict> conflicts;
    for (const kube::ObjectKey& key : store_.take_changes().services) {
      const store::ServicePtr service = store_.service(key);
      const auto slices = store_.slices_of(key);
      desired::ServicePlan plan = desired::plan_service(service.get(), slices, family_, view_);
      wanted_.set_service(
          key, std::move(plan.seniority), std::move(plan.claims), delta_.frontends, conflicts);
    }
    handover_.about_to_apply(family_, wanted_, delta_, *reconciler_);
    handover_.applied(family_, wanted_, delta_, {}, {}, *reconciler_);
    delta_ = {};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!reconciler_->idle()) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("the table was not dealt with in time");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  net::Family family() const { return family_; }

 private:
  net::Family family_;
  desired::NodeView view_;
  store::ObjectStore store_;
  desired::DesiredState wanted_;
  backend::Delta delta_;
  sync::FlowHandover handover_;
  std::unique_ptr<backend::conntrack::Reconciler> reconciler_;
};

// In a namespace that holds nothing yet.
std::vector<std::string> differences(const json& test_case) {
  lab::run_program({"ip", "-batch", "-"}, kNodeAddresses);
  test::TrackedFlows tracked;
  Agent agent(test_case);
  agent.apply(test_case.at("before"));
  agent.sync();

  std::map<std::string, Flow> entries;
  std::vector<Flow> flows;
  for (const json& entry : test_case.at("entries")) {
    flows.push_back(flow_of(entry));
    entries.emplace(entry.at("id").get<std::string>(), flows.back());
  }
  tracked.insert(flows);

  const json& change = test_case.at("change");
  agent.remove(change.value("delete", json::array()));
  agent.apply(change.value("apply", json::array()));
  agent.sync();

  const std::multiset<Flow> left = tracked.all(agent.family());
  std::vector<std::string> out;
  const json& expect = test_case.at("expect");
  for (const auto& [list, kept] : {std::pair{"kept", true}, std::pair{"removed", false}}) {
    for (const json& id : expect.value(list, json::array())) {
      if (left.contains(entries.at(id.get<std::string>())) != kept) {
        out.push_back(
            "entry " + id.get<std::string>() + ": expected " + list + ", seen " +
            (kept ? "removed" : "kept"));
      }
    }
  }
  return out;
}

}  // namespace

CaseResult run_conntrack(const json& test_case, const RunOptions&) {
  CaseResult result;
  if (::geteuid() != 0) {
    return {Outcome::Skipped, {"needs root"}};
  }
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      if (::unshare(CLONE_NEWNET) != 0) {
        throw std::system_error(errno, std::generic_category(), "unshare");
      }
      result.messages = differences(test_case);
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) {
    std::rethrow_exception(thrown);
  }
  result.outcome = result.messages.empty() ? Outcome::Passed : Outcome::Failed;
  return result;
}

}  // namespace shunt::conformance
