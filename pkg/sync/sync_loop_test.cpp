#include "sync/sync_loop.h"

#include <poll.h>

#include <algorithm>
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
  std::map<FrontendKey, std::vector<net::Cidr>> sources;
  std::vector<net::Cidr> pod_cidrs;
  std::optional<std::vector<net::Cidr>> service_cidrs;
  std::optional<std::vector<net::Cidr>> node_port_cidrs;
  int applies = 0;
  int failures_left = 0;
  std::set<FrontendKey> prepared;
  std::set<FrontendKey> last_delta;
  WakeFd vandals;  // rung: somebody did this
  backend::Drift vandalism{"table", "", true, 1, "somebody (pid 1)"};
};

class FakeBackend : public backend::Backend {
 public:
  explicit FakeBackend(FakeKernel& kernel) : kernel_(kernel) {}
  Result<> cleanup() override { return {}; }
  backend::Cost prepare(
      const desired::DesiredState& wanted, std::span<const FrontendKey> frontends) override {
    const std::lock_guard lock(kernel_.mutex);
    CHECK(kernel_.applies == 0);
    for (const FrontendKey& key : frontends) {
      CHECK(wanted.find(key) != nullptr);
      kernel_.prepared.insert(key);
    }
    return {};
  }
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
        kernel_.sources[key] = plan->sources ? *plan->sources : std::vector<net::Cidr>{};
        kernel_.frontends[key] = plan->endpoints ? *plan->endpoints : desired::EndpointList{};
      }
    }
    kernel_.pod_cidrs = wanted.pod_cidrs;
    kernel_.service_cidrs = wanted.service_cidrs;
    kernel_.node_port_cidrs = wanted.node_port_cidrs;
    report.cost.commits = 1;
    return report;
  }

  int drift_fd() const override { return kernel_.vandals.fd(); }
  std::vector<backend::Drift> take_drift() override {
    pollfd descriptor{kernel_.vandals.fd(), POLLIN, 0};
    if (::poll(&descriptor, 1, 0) == 0) {
      return {};
    }
    kernel_.vandals.clear();
    const std::lock_guard lock(kernel_.mutex);
    return {kernel_.vandalism};
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

std::shared_ptr<const kube::Node> node(
    const char* zone,
    std::vector<std::string> pod_cidrs = {},
    const std::vector<const char*>& addresses = {}) {
  auto n = std::make_shared<kube::Node>();
  n->meta.key = {"", "here"};
  if (zone != nullptr) {
    n->zone = zone;
  }
  n->pod_cidrs = std::move(pod_cidrs);
  for (const char* address : addresses) {
    n->addresses.push_back({"InternalIP", address});
  }
  return n;
}

// A whole list at once.
template <typename T>
void list(
    Mailbox<std::shared_ptr<const T>>& box,
    const std::map<std::string, std::type_identity_t<std::shared_ptr<const T>>>& all) {
  box.begin_list();
  for (const auto& [key, object] : all) {
    box.upsert(key, object);
  }
  box.end_list();
}

class Fixture {
 public:
  explicit Fixture(const SyncOptions& options = {"here", {}, {}, false, Millis{0}})
      : Fixture(options, own_kernel_) {}
  Fixture(const SyncOptions& options, FakeKernel& shared) : kernel(shared) {
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
    list(
        boxes.services, {{"ns/a", service("a", "10.96.0.1")}, {"ns/b", service("b", "10.96.0.2")}});
    list(boxes.slices, {{"ns/a-1", slice("a", {"10.64.0.1", "10.64.0.2"})}});
  }
  std::shared_ptr<const Status> settle() { return loop->settle(Millis{5000}); }
  std::size_t endpoints(const char* ip) {
    const std::lock_guard lock(kernel.mutex);
    const auto at = kernel.frontends.find({*net::parse_ip(ip), net::Protocol::Tcp, net::Port{80}});
    return at == kernel.frontends.end() ? 99 : at->second.size();
  }
  std::vector<net::Cidr> sources(const char* ip) {
    const std::lock_guard lock(kernel.mutex);
    return kernel.sources[{*net::parse_ip(ip), net::Protocol::Tcp, net::Port{80}}];
  }
  int applies() {
    const std::lock_guard lock(kernel.mutex);
    return kernel.applies;
  }

  FakeKernel& kernel;
  Mailboxes boxes;
  std::unique_ptr<SyncLoop> loop;

 private:
  FakeKernel own_kernel_;
  std::thread thread_;
};

TEST_CASE("what is known of a Service is handed over while the lists are still coming") {
  Fixture f;
  const auto prepared = [&] {
    (void)f.settle();
    const std::lock_guard lock(f.kernel.mutex);
    return f.kernel.prepared.size();
  };
  f.boxes.slices.begin_list();
  f.boxes.services.begin_list();
  f.boxes.services.upsert("ns/a", service("a", "10.96.0.1"));
  f.boxes.services.upsert("ns/b", service("b", "10.96.0.2"));
  f.boxes.slices.upsert("ns/a-1", slice("a", {"10.64.0.1", "10.64.0.2"}));
  CHECK(prepared() == 0);  // without the Node's zone the plan could be another one
  list(f.boxes.nodes, {{"here", node("z1", {}, {"10.80.0.10"})}});
  CHECK(prepared() == 1);
  f.boxes.slices.upsert("ns/b-1", slice("b", {"10.64.0.3"}));
  CHECK(prepared() == 2);
  CHECK(f.applies() == 0);

  f.boxes.services.begin_list();  // the first list broke off, and b is gone meanwhile
  f.boxes.services.upsert("ns/a", service("a", "10.96.0.1"));
  f.boxes.services.end_list();
  f.boxes.slices.end_list();
  CHECK(f.settle()->synced);
  CHECK(f.endpoints("10.96.0.1") == 2);
  CHECK(f.endpoints("10.96.0.2") == 99);
}

TEST_CASE("nothing is written before Services and EndpointSlices are complete") {
  for (const bool services_first : {true, false}) {
    Fixture f;
    if (services_first) {
      list(f.boxes.services, {{"ns/a", service("a", "10.96.0.1")}});
    } else {
      list(f.boxes.slices, {{"ns/a-1", slice("a", {"10.64.0.1"})}});
    }
    list(f.boxes.service_cidrs, {});
    CHECK_FALSE(f.settle()->synced);
    CHECK(f.applies() == 0);
    if (services_first) {
      list(f.boxes.slices, {{"ns/a-1", slice("a", {"10.64.0.1"})}});
    } else {
      list(f.boxes.services, {{"ns/a", service("a", "10.96.0.1")}});
    }
    CHECK(f.settle()->synced);
    CHECK(f.endpoints("10.96.0.1") == 1);
  }
}

TEST_CASE("an empty cluster is synced as well") {
  Fixture f;
  list(f.boxes.services, {});
  list(f.boxes.slices, {});
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
  list(f.boxes.services, {{"ns/a", service("a", "10.96.0.1")}});
  f.settle();
  CHECK(f.endpoints("10.96.0.1") == 2);
  CHECK(f.endpoints("10.96.0.2") == 99);
}

TEST_CASE("the node's zone decides, and a new zone decides anew") {
  Fixture f;
  list(f.boxes.nodes, {{"here", node("z1")}});
  list(f.boxes.services, {{"ns/a", service("a", "10.96.0.1")}});
  list(f.boxes.slices, {{"ns/a-1", slice("a", {"10.64.0.1", "10.64.0.2"}, "1", "z1")}});
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

TEST_CASE("the first write waits for the Node and its address, but not for ever") {
  Fixture patient({"here", {}, {}, false, Millis{60'000}});
  patient.lists_arrive();
  CHECK_FALSE(patient.settle()->synced);
  list(patient.boxes.nodes, {});  // there is none
  CHECK_FALSE(patient.settle()->synced);
  patient.boxes.nodes.upsert("here", node("z1"));
  CHECK_FALSE(patient.settle()->synced);
  CHECK(patient.applies() == 0);
  patient.boxes.nodes.upsert("here", node("z1", {}, {"10.80.0.10"}));
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
  list(f.boxes.service_cidrs, {});
  f.settle();
  CHECK(f.kernel.service_cidrs == std::vector<net::Cidr>{});
}

TEST_CASE("with NodeCIDR the first write waits for the Node's ranges") {
  SyncOptions options{"here", {}, {}, true, Millis{0}};
  Fixture f(options);
  f.lists_arrive();
  list(f.boxes.nodes, {{"here", node(nullptr)}});
  CHECK_FALSE(f.settle()->synced);
  f.boxes.nodes.upsert("here", node(nullptr, {"10.64.0.0/24", "fd64::/64"}));
  CHECK(f.settle()->synced);
  CHECK(f.kernel.pod_cidrs == std::vector{*net::parse_cidr("10.64.0.0/24")});
}

TEST_CASE("podCIDRs that do not come are for the next process") {
  std::atomic<int> gave_up = 0;
  SyncOptions options{"here", {}, {}, true, Millis{0}};
  options.give_up = [&](const Error&) { ++gave_up; };
  options.pod_cidrs_patience = Millis{20};
  Fixture f(options);
  f.lists_arrive();
  for (int i = 0; i < 500 && gave_up == 0; ++i) {
    f.settle();
    std::this_thread::sleep_for(Millis{10});
  }
  CHECK(f.applies() == 0);
  CHECK(gave_up == 1);
}

TEST_CASE("podCIDRs that change are followed, those that go are kept") {
  Fixture f(SyncOptions{"here", {}, {}, true, Millis{0}});
  f.lists_arrive();
  list(f.boxes.nodes, {{"here", node(nullptr, {"10.64.0.0/24"})}});
  CHECK(f.settle()->synced);
  f.boxes.nodes.upsert("here", node(nullptr, {"10.65.0.0/24"}));
  CHECK(f.settle()->idle);
  CHECK(f.kernel.pod_cidrs == std::vector{*net::parse_cidr("10.65.0.0/24")});
  f.boxes.nodes.upsert("here", node("z1", {}));
  CHECK(f.settle()->idle);
  CHECK(f.kernel.pod_cidrs == std::vector{*net::parse_cidr("10.65.0.0/24")});
}

std::vector<net::Cidr> cidrs(const std::vector<const char*>& texts) {
  std::vector<net::Cidr> out;
  out.reserve(texts.size());
  for (const char* text : texts) {
    out.push_back(*net::parse_cidr(text));
  }
  return out;
}

TEST_CASE("NodePorts answer on the Node's own address, whichever that is now") {
  Fixture f;
  f.lists_arrive();
  f.settle();
  CHECK_FALSE(f.kernel.node_port_cidrs);  // who knows: what the kernel has stays
  list(f.boxes.nodes, {{"here", node(nullptr, {}, {"10.80.0.10"})}});
  f.settle();
  CHECK(f.kernel.node_port_cidrs == cidrs({"10.80.0.10/32"}));
  f.boxes.nodes.upsert("here", node(nullptr, {}, {"10.80.0.99"}));
  f.settle();
  CHECK(f.kernel.node_port_cidrs == cidrs({"10.80.0.99/32"}));
  f.boxes.nodes.upsert("here", node(nullptr));  // it had one a moment ago
  f.settle();
  f.boxes.nodes.remove("here");
  f.settle();
  CHECK(f.kernel.node_port_cidrs == cidrs({"10.80.0.99/32"}));
}

TEST_CASE("a Node that never had an address leaves NodePorts open on all of them") {
  Fixture f;
  f.lists_arrive();
  f.boxes.nodes.begin_list();
  f.boxes.nodes.upsert("here", node("z1"));
  f.settle();
  CHECK_FALSE(f.kernel.node_port_cidrs);  // the list has not ended
  f.boxes.nodes.end_list();
  f.settle();
  CHECK(f.kernel.node_port_cidrs == cidrs({"0.0.0.0/0"}));
}

TEST_CASE("settings about NodePort addresses beat the Node") {
  SyncOptions options{"here", {}, {}, false, Millis{0}};
  SECTION("ranges") {
    options.node_ports = cidrs({"10.80.1.0/24", "10.80.2.0/24", "fd80::/64"});
    Fixture f(options);
    f.lists_arrive();
    f.settle();
    CHECK(f.kernel.node_port_cidrs == cidrs({"10.80.1.0/24", "10.80.2.0/24"}));
  }
  SECTION("ranges of the other family alone") {
    options.node_ports = cidrs({"fd80::/64"});
    Fixture f(options);
    f.lists_arrive();
    f.settle();
    CHECK(f.kernel.node_port_cidrs == cidrs({"0.0.0.0/0"}));
  }
  SECTION("a bind address") {
    options.bind_address = *net::parse_ip("10.80.1.10");
    Fixture f(options);
    f.lists_arrive();
    f.settle();
    CHECK(f.kernel.node_port_cidrs == cidrs({"10.80.1.10/32"}));
    list(f.boxes.nodes, {{"here", node(nullptr, {}, {"10.80.0.10"})}});
    f.settle();
    CHECK(f.kernel.node_port_cidrs == cidrs({"10.80.1.10/32"}));
  }
}

TEST_CASE(
    "the node's address decides whether balancer addresses are sources, also when it changes") {
  Fixture f;
  auto balanced = std::make_shared<kube::Service>(*service("a", "10.96.0.1"));
  balanced->type = "LoadBalancer";
  balanced->load_balancer_source_ranges = {"10.80.0.0/24"};
  balanced->ingress = {{"192.0.2.1", std::nullopt}};
  list(f.boxes.services, {{"ns/a", balanced}});
  list(f.boxes.slices, {{"ns/a-1", slice("a", {"10.64.0.1"})}});
  list(f.boxes.nodes, {{"here", node(nullptr, {}, {"10.80.1.10"})}});
  f.settle();
  CHECK(f.sources("192.0.2.1") == cidrs({"10.80.0.0/24"}));
  f.boxes.nodes.upsert("here", node(nullptr, {}, {"10.80.0.10"}));
  f.settle();
  CHECK(f.sources("192.0.2.1") == cidrs({"10.80.0.0/24", "192.0.2.1/32"}));
}

TEST_CASE("ports with policy Local and endpoints elsewhere only are counted, as they come and go") {
  Fixture f;
  const auto local = [](const char* name, const char* ip, bool internal, const char* version) {
    auto s = std::make_shared<kube::Service>(*service(name, ip, version));
    if (internal) {
      s->internal_traffic_policy = "Local";
    }
    s->type = "NodePort";
    s->external_traffic_policy = "Local";
    s->ports = {{"", "TCP", 80, 30080}};
    return std::shared_ptr<const kube::Service>(s);
  };
  const auto counted = [&] {
    const auto status = f.settle();
    const auto at = status->without_local.find(net::Family::IPv4);
    REQUIRE(at != status->without_local.end());
    return std::pair(at->second.internal, at->second.external);
  };
  list(f.boxes.services, {{"ns/a", local("a", "10.96.0.1", true, "1")}});
  list(f.boxes.slices, {{"ns/a-1", slice("a", {"10.64.0.1"})}});
  CHECK(counted() == std::pair<std::size_t, std::size_t>(1, 1));
  f.boxes.services.upsert("ns/a", local("a", "10.96.0.1", false, "2"));
  CHECK(counted() == std::pair<std::size_t, std::size_t>(0, 1));
  f.boxes.services.upsert("ns/b", local("b", "10.96.0.2", true, "1"));
  f.boxes.slices.upsert("ns/b-1", slice("b", {"10.64.0.7"}));
  CHECK(counted() == std::pair<std::size_t, std::size_t>(1, 2));
  f.boxes.slices.remove("ns/b-1");
  f.boxes.services.remove("ns/a");
  CHECK(counted() == std::pair<std::size_t, std::size_t>(0, 0));
}

TEST_CASE("whoever wants to know is told which frontends changed, and only those") {
  std::mutex mutex;
  std::vector<std::pair<FrontendKey, std::size_t>> told;
  SyncOptions options{"here", {}, {}, false, Millis{0}};
  options.frontends_changed =
      [&](net::Family, const desired::DesiredState& wanted, std::span<const FrontendKey> touched) {
        const std::lock_guard lock(mutex);
        for (const FrontendKey& key : touched) {
          const desired::FrontendPlan* plan = wanted.find(key);
          told.emplace_back(key, plan != nullptr && plan->endpoints ? plan->endpoints->size() : 0);
        }
      };
  const FrontendKey a{*net::parse_ip("10.96.0.1"), net::Protocol::Tcp, net::Port{80}};
  Fixture f(options);
  f.lists_arrive();
  f.settle();
  {
    const std::lock_guard lock(mutex);
    CHECK(told.size() == 2);
    told.clear();
  }
  f.boxes.slices.upsert("ns/a-1", slice("a", {"10.64.0.1"}, "2"));
  f.settle();
  f.boxes.services.remove("ns/a");
  f.settle();
  const std::lock_guard lock(mutex);
  CHECK(told == std::vector<std::pair<FrontendKey, std::size_t>>{{a, 1}, {a, 0}});
}

TEST_CASE("without a range of its family nobody counts as an outsider") {
  Fixture f;
  f.lists_arrive();
  f.settle();
  CHECK(f.kernel.pod_cidrs.empty());
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

// Notes, at each call, how many endpoints the kernel has for a frontend.
class WatchfulCleaner : public backend::FlowCleaner {
 public:
  explicit WatchfulCleaner(FakeKernel& kernel) : kernel_(kernel) {}
  void changing(net::Family, const std::vector<FrontendKey>& frontends) override {
    const std::lock_guard lock(kernel_.mutex);
    for (const FrontendKey& key : frontends) {
      warned.push_back(kernel_.frontends[key].size());
    }
  }
  void changed(net::Family, std::vector<backend::ServingChange> changes) override {
    const std::lock_guard lock(kernel_.mutex);
    for (const backend::ServingChange& change : changes) {
      seen.push_back(kernel_.frontends[change.frontend].size());
    }
  }
  void untranslated(
      net::Family, std::shared_ptr<const std::vector<FrontendKey>> frontends) override {
    const std::lock_guard lock(kernel_.mutex);
    holes.emplace_back(kernel_.applies, *frontends);
  }
  bool idle() const override { return true; }

  std::vector<std::size_t> warned;
  std::vector<std::size_t> seen;
  std::vector<std::pair<int, std::vector<FrontendKey>>> holes;  // after so many applies

 private:
  FakeKernel& kernel_;
};

TEST_CASE("the cleaner of flows is warned before a change, and told when the kernel has it") {
  FakeKernel kernel;
  WatchfulCleaner cleaner(kernel);
  SyncOptions options{"here", {}, {}, false, Millis{0}};
  options.flow_cleaner = &cleaner;
  Fixture f(options, kernel);
  const auto udp = [](const std::vector<const char*>& addresses, const char* version) {
    auto s = std::make_shared<kube::EndpointSlice>(*slice("a", addresses, version));
    s->ports[0].protocol = "UDP";
    return s;
  };
  auto s = std::make_shared<kube::Service>(*service("a", "10.96.0.1"));
  s->ports[0].protocol = "UDP";
  list(f.boxes.services, {{"ns/a", s}});
  list(f.boxes.slices, {{"ns/a-1", udp({"10.64.0.1", "10.64.0.2"}, "1")}});
  f.settle();
  CHECK(cleaner.seen == std::vector<std::size_t>{2});
  {
    const std::lock_guard lock(kernel.mutex);
    kernel.failures_left = 1;
  }
  f.boxes.slices.upsert("ns/a-1", udp({"10.64.0.1"}, "2"));
  while (!f.settle()->idle) {
    std::this_thread::sleep_for(Millis{1});
  }
  CHECK(cleaner.seen == std::vector<std::size_t>{2, 1});
  CHECK(cleaner.warned == std::vector<std::size_t>{0, 2});
}

TEST_CASE("what others did is put back at once, however long the shortest interval is") {
  FakeKernel kernel;
  SyncOptions options{"here", {Millis{3'600'000}, Millis{30'000}}, {}, false, Millis{0}};
  Fixture f(options, kernel);
  f.lists_arrive();
  f.settle();
  const int before = [&] {
    const std::lock_guard lock(kernel.mutex);
    return kernel.applies;
  }();
  kernel.vandals.ring();
  for (int i = 0; i < 500 && f.settle()->drift.empty(); ++i) {
    std::this_thread::sleep_for(Millis{1});
  }
  const auto status = f.settle();
  CHECK(status->drift.at({net::Family::IPv4, "table"}) == 1);
  const std::lock_guard lock(kernel.mutex);
  CHECK(kernel.applies == before + 1);
}

TEST_CASE("the cleaner hears of holes in our rules once they are mended, and of nothing else") {
  FakeKernel kernel;
  WatchfulCleaner cleaner(kernel);
  SyncOptions options{"here", {}, {}, false, Millis{0}};
  options.flow_cleaner = &cleaner;
  Fixture f(options, kernel);
  f.lists_arrive();
  f.settle();
  CHECK(cleaner.holes.empty());
  const std::vector<FrontendKey> web{
      {*net::parse_ip("10.96.0.1"), net::Protocol::Tcp, net::Port{80}}};
  // How many applies it took, and what the cleaner had heard when all was well again.
  const auto after = [&](const backend::Drift& drift, int failures) {
    int before = 0;
    {
      const std::lock_guard lock(kernel.mutex);
      kernel.vandalism = drift;
      kernel.failures_left = failures;
      before = kernel.applies;
      cleaner.holes.clear();
    }
    kernel.vandals.ring();
    for (int i = 0; i < 20'000; ++i) {
      std::this_thread::sleep_for(Millis{1});  // what failed is tried again later and later
      const bool idle = f.settle()->idle;
      const std::lock_guard lock(kernel.mutex);
      if (idle && kernel.applies > before + failures) {
        break;
      }
    }
    const std::lock_guard lock(kernel.mutex);
    auto heard = cleaner.holes;
    for (auto& [applies, keys] : heard) {
      applies -= before;
    }
    return heard;
  };
  using Heard = decltype(cleaner.holes);
  CHECK(after({"table", "", true, 1, ""}, 0) == Heard{{1, web}});
  CHECK(after({"element", "cluster-ips", true, 1, ""}, 2) == Heard{{3, web}});
  CHECK(after({"unknown", "", false, 1, ""}, 0) == Heard{{1, web}});
  CHECK(after({"rule", "dispatch", false, 1, ""}, 0) == Heard{{1, web}});
  CHECK(after({"element", "slots", false, 1, ""}, 0).empty());
}

struct Notes : Observer {
  void queued() override { ++queues; }
  void received(std::size_t services, std::size_t slices) override {
    all_services += services;
    all_slices += slices;
  }
  void node_seen(const kube::Node* node) override { seen_node = node != nullptr; }
  void health_check_planned(
      net::Family family,
      const kube::ObjectKey& service,
      const std::optional<desired::HealthCheck>& check,
      const std::string&) override {
    if (family == net::Family::IPv4) {
      checks[service.name] = check;
    }
  }
  void ran(net::Family, const RunReport& report) override { runs.push_back(report.succeeded); }
  void programmed(net::Family, std::chrono::nanoseconds latency) override {
    latencies.push_back(latency);
  }
  void drifted(net::Family, const backend::Drift& drift) override { drifts += drift.count; }
  void noticed(const kube::Notice& notice) override { notices.push_back(notice); }

  int queues = 0;
  std::size_t all_services = 0;
  std::size_t all_slices = 0;
  bool seen_node = false;
  std::map<std::string, std::optional<desired::HealthCheck>> checks;
  std::vector<bool> runs;
  std::vector<std::chrono::nanoseconds> latencies;
  std::size_t drifts = 0;
  std::vector<kube::Notice> notices;
};

TEST_CASE("who watches the loop hears of work, runs, latency, and of each oddity once") {
  Notes notes;
  FakeKernel kernel;
  SyncOptions options{"here", {}, {}, false, Millis{0}};
  options.observer = &notes;
  Fixture f(options, kernel);
  auto odd = std::make_shared<kube::Service>(*service("odd", "10.96.0.3"));
  odd->meta.uid = "uid-odd";
  odd->ports = {{"", "GOPHER", 70, 0}};
  list(f.boxes.services, {{"ns/a", service("a", "10.96.0.1")}, {"ns/odd", odd}});
  list(f.boxes.slices, {{"ns/a-1", slice("a", {"10.64.0.1"})}});
  list(f.boxes.nodes, {{"here", node("z1")}});
  f.settle();
  CHECK(notes.seen_node);
  CHECK(notes.runs == std::vector{true});
  CHECK(notes.checks.contains("a"));
  REQUIRE(notes.notices.size() == 1);
  CHECK(notes.notices[0].object == kube::ObjectKey{"ns", "odd"});
  CHECK(notes.notices[0].uid == "uid-odd");
  CHECK(notes.notices[0].reason == "SetAside");
  CHECK(notes.notices[0].note.find("GOPHER") != std::string::npos);

  auto later = std::make_shared<kube::Service>(*odd);
  later->meta.resource_version = "2";
  f.boxes.services.upsert("ns/odd", later);
  f.settle();
  CHECK(notes.notices.size() == 1);

  const int before = notes.queues;
  auto triggered = std::make_shared<kube::EndpointSlice>(*slice("a", {"10.64.0.2"}, "2"));
  const auto now = std::chrono::system_clock::now() + std::chrono::milliseconds(1);
  triggered->trigger_time_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  {
    const std::lock_guard lock(kernel.mutex);
    kernel.failures_left = 1;
  }
  f.boxes.slices.upsert("ns/a-1", triggered);
  while (!f.settle()->idle) {
    std::this_thread::sleep_for(Millis{1});
  }
  CHECK(notes.queues == before + 1);
  CHECK(notes.runs.back());
  CHECK(std::count(notes.runs.begin(), notes.runs.end(), false) == 1);
  REQUIRE(notes.latencies.size() == 1);  // when the kernel has it, not before
  CHECK(notes.latencies[0] < std::chrono::minutes(1));
  CHECK(notes.all_slices == 3);  // the slice, the end of the list, the change

  auto older = std::make_shared<kube::Service>(*service("b", "10.96.0.1"));
  older->meta.creation_seconds = -5;
  f.boxes.services.upsert("ns/b", older);
  f.settle();
  CHECK(notes.notices.back().reason == "AddressConflict");
  CHECK(notes.notices.back().object == kube::ObjectKey{"ns", "a"});
}

}  // namespace
}  // namespace shunt::sync
