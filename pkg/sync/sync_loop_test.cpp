#include "sync/sync_loop.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <thread>

namespace shunt::sync {
namespace {

using desired::FrontendKey;

// A kernel that takes what it is told, and remembers.
struct FakeKernel {
  std::mutex mutex;
  std::map<FrontendKey, std::vector<net::SocketAddress>> frontends;
  std::vector<net::Cidr> pod_cidrs;
  std::optional<std::vector<net::Cidr>> service_cidrs;
  int applies = 0;
  int failures_left = 0;
  std::set<FrontendKey> last_delta;
};

class FakeBackend : public backend::Backend {
 public:
  explicit FakeBackend(FakeKernel& kernel) : kernel_(kernel) {}
  Result<> adopt() override { return {}; }
  Result<> cleanup() override { return {}; }
  backend::ApplyReport apply(
      const desired::DesiredState& wanted, const backend::Delta& delta) override {
    const std::lock_guard lock(kernel_.mutex);
    backend::ApplyReport report;
    ++kernel_.applies;
    const auto keys = delta.everything ? wanted.keys() : delta.frontends;
    kernel_.last_delta = {keys.begin(), keys.end()};
    if (kernel_.failures_left > 0) {
      --kernel_.failures_left;
      report.outcome = fail(Errc::Again, "busy");
      report.retry = keys;
      return report;
    }
    for (const FrontendKey& key : keys) {
      const desired::FrontendPlan* plan = wanted.find(key);
      if (plan == nullptr) {
        kernel_.frontends.erase(key);
      } else {
        kernel_.frontends[key] = plan->endpoints ? *plan->endpoints : desired::EndpointList{};
      }
    }
    kernel_.pod_cidrs = wanted.pod_cidrs;
    kernel_.service_cidrs = wanted.service_cidrs;
    report.commits = 1;
    return report;
  }

 private:
  FakeKernel& kernel_;
};

std::shared_ptr<const kube::Service> service(
    const std::string& name, const char* ip, const char* version = "1") {
  auto s = std::make_shared<kube::Service>();
  s->meta.key = {"ns", name};
  s->meta.resource_version = version;
  s->cluster_ip = ip;
  s->cluster_ips = {ip};
  s->ip_families = {"IPv4"};
  s->ports = {{"", "TCP", 80, 0}};
  return s;
}

std::shared_ptr<const kube::EndpointSlice> slice(
    const std::string& service,
    const std::vector<const char*>& addresses,
    const char* version = "1",
    const char* zone = nullptr) {
  auto s = std::make_shared<kube::EndpointSlice>();
  s->meta.key = {"ns", service + "-1"};
  s->meta.resource_version = version;
  s->service_name = service;
  s->address_type = "IPv4";
  for (const char* address : addresses) {
    kube::SliceEndpoint e;
    e.address = net::parse_ip(address);
    if (zone != nullptr) {
      e.zone_hints = {zone};
      zone = "other";
    }
    s->endpoints.push_back(std::move(e));
  }
  s->ports = {{"", "TCP", 8080}};
  return s;
}

std::shared_ptr<const kube::Node> node(const char* zone, std::vector<std::string> pod_cidrs = {}) {
  auto n = std::make_shared<kube::Node>();
  n->meta.key = {"", "here"};
  if (zone != nullptr) {
    n->zone = zone;
  }
  n->pod_cidrs = std::move(pod_cidrs);
  return n;
}

class Fixture {
 public:
  explicit Fixture(const SyncOptions& options = {"here", {}, {}, false, Millis{0}}) {
    std::vector<FamilyBackend> backends;
    backends.push_back({net::Family::IPv4, std::make_unique<FakeBackend>(kernel)});
    loop = std::make_unique<SyncLoop>(options, boxes, std::move(backends), [] { return 0.0; });
    thread_ = std::thread([this] { loop->run(); });
  }
  ~Fixture() {
    loop->stop();
    thread_.join();
  }
  void lists_arrive() {
    boxes.services.replace(
        {{"ns/a", service("a", "10.96.0.1")}, {"ns/b", service("b", "10.96.0.2")}});
    boxes.slices.replace({{"ns/a-1", slice("a", {"10.64.0.1", "10.64.0.2"})}});
  }
  std::shared_ptr<const Status> settle() { return loop->settle(Millis{5000}); }
  std::size_t endpoints(const char* ip) {
    const std::lock_guard lock(kernel.mutex);
    const auto at = kernel.frontends.find({*net::parse_ip(ip), net::Protocol::Tcp, net::Port{80}});
    return at == kernel.frontends.end() ? 99 : at->second.size();
  }
  int applies() {
    const std::lock_guard lock(kernel.mutex);
    return kernel.applies;
  }

  FakeKernel kernel;
  Mailboxes boxes;
  std::unique_ptr<SyncLoop> loop;

 private:
  std::thread thread_;
};

TEST_CASE("nothing is written before Services and EndpointSlices are complete") {
  for (const bool services_first : {true, false}) {
    Fixture f;
    if (services_first) {
      f.boxes.services.replace({{"ns/a", service("a", "10.96.0.1")}});
    } else {
      f.boxes.slices.replace({{"ns/a-1", slice("a", {"10.64.0.1"})}});
    }
    f.boxes.service_cidrs.replace({});
    CHECK_FALSE(f.settle()->synced);
    CHECK(f.applies() == 0);
    if (services_first) {
      f.boxes.slices.replace({{"ns/a-1", slice("a", {"10.64.0.1"})}});
    } else {
      f.boxes.services.replace({{"ns/a", service("a", "10.96.0.1")}});
    }
    CHECK(f.settle()->synced);
    CHECK(f.endpoints("10.96.0.1") == 1);
  }
}

TEST_CASE("an empty cluster is synced as well") {
  Fixture f;
  f.boxes.services.replace({});
  f.boxes.slices.replace({});
  CHECK(f.settle()->synced);
  CHECK(f.applies() == 1);
}

TEST_CASE("a change touches its Service only") {
  Fixture f;
  f.lists_arrive();
  f.settle();
  f.boxes.slices.upsert("ns/a-1", slice("a", {"10.64.0.1"}, "2"));
  CHECK(f.settle()->idle);
  CHECK(f.endpoints("10.96.0.1") == 1);
  CHECK(f.kernel.last_delta.size() == 1);
  f.boxes.slices.remove("ns/a-1");
  f.boxes.services.remove("ns/b");
  f.settle();
  CHECK(f.endpoints("10.96.0.1") == 0);
  CHECK(f.endpoints("10.96.0.2") == 99);
}

TEST_CASE("what a later list does not have is gone") {
  Fixture f;
  f.lists_arrive();
  f.settle();
  f.boxes.services.replace({{"ns/a", service("a", "10.96.0.1")}});
  f.settle();
  CHECK(f.endpoints("10.96.0.1") == 2);
  CHECK(f.endpoints("10.96.0.2") == 99);
}

TEST_CASE("the node's zone decides, and a new zone decides anew") {
  Fixture f;
  f.boxes.nodes.replace({{"here", node("z1")}});
  f.boxes.services.replace({{"ns/a", service("a", "10.96.0.1")}});
  f.boxes.slices.replace({{"ns/a-1", slice("a", {"10.64.0.1", "10.64.0.2"}, "1", "z1")}});
  f.settle();
  CHECK(f.endpoints("10.96.0.1") == 1);
  f.boxes.nodes.upsert("here", node("z9"));
  f.settle();
  CHECK(f.endpoints("10.96.0.1") == 2);
  f.boxes.nodes.upsert("here", node("z1"));
  f.settle();
  CHECK(f.endpoints("10.96.0.1") == 1);
  f.boxes.nodes.remove("here");  // the last Node is still the best answer
  f.settle();
  CHECK(f.endpoints("10.96.0.1") == 1);
}

TEST_CASE("the first write waits for the Node, but not for ever") {
  Fixture patient({"here", {}, {}, false, Millis{60'000}});
  patient.lists_arrive();
  CHECK_FALSE(patient.settle()->synced);
  CHECK(patient.applies() == 0);
  patient.boxes.nodes.replace({});  // there is none
  CHECK(patient.settle()->synced);

  Fixture hasty({"here", {}, {}, false, Millis{20}});
  hasty.lists_arrive();
  for (int i = 0; i < 500 && !hasty.settle()->synced; ++i) {
    std::this_thread::sleep_for(Millis{10});
  }
  CHECK(hasty.endpoints("10.96.0.1") == 2);
}

TEST_CASE("ServiceCIDRs that are not known yet are left as they are") {
  Fixture f;
  f.lists_arrive();
  f.settle();
  CHECK_FALSE(f.kernel.service_cidrs);
  f.boxes.service_cidrs.replace({});
  f.settle();
  CHECK(f.kernel.service_cidrs == std::vector<net::Cidr>{});
}

TEST_CASE("with NodeCIDR the first write waits for the Node's ranges") {
  SyncOptions options{"here", {}, {}, true, Millis{0}};
  Fixture f(options);
  f.lists_arrive();
  f.boxes.nodes.replace({{"here", node(nullptr)}});
  CHECK_FALSE(f.settle()->synced);
  f.boxes.nodes.upsert("here", node(nullptr, {"10.64.0.0/24", "fd64::/64"}));
  CHECK(f.settle()->synced);
  CHECK(f.kernel.pod_cidrs == std::vector{*net::parse_cidr("10.64.0.0/24")});
}

TEST_CASE("without a range of its family nobody counts as an outsider") {
  Fixture f;
  f.lists_arrive();
  f.settle();
  CHECK(f.kernel.pod_cidrs == std::vector{*net::parse_cidr("0.0.0.0/0")});
}

TEST_CASE("a failed apply is retried with everything it was to do, and changes meanwhile join it") {
  Fixture f;
  f.lists_arrive();
  f.settle();
  {
    const std::lock_guard lock(f.kernel.mutex);
    f.kernel.failures_left = 2;
  }
  f.boxes.slices.upsert("ns/a-1", slice("a", {"10.64.0.1"}, "2"));
  CHECK_FALSE(f.settle()->idle);
  f.boxes.slices.upsert("ns/b-1", slice("b", {"10.64.0.7"}));
  for (int i = 0; i < 500 && !f.settle()->idle; ++i) {
    std::this_thread::sleep_for(Millis{10});
  }
  CHECK(f.endpoints("10.96.0.1") == 1);
  CHECK(f.endpoints("10.96.0.2") == 1);
}

}  // namespace
}  // namespace shunt::sync
