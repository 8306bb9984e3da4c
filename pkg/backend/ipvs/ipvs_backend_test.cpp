#include "backend/ipvs/ipvs_backend.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "fake/fake_ipvs.h"
#include "fake/fake_nf_tables.h"

namespace shunt::backend::ipvs {
namespace {

using desired::DesiredState;
using desired::FrontendKey;
using desired::FrontendPlan;
using desired::Reach;
using test::FakeIpvs;
using test::FakeTable;

net::SocketAddress at(const char* text) { return *net::parse_socket_address(text); }
net::IpAddress ip(const char* text) { return *net::parse_ip(text); }
ServerKey tcp(const char* text) { return {at(text), net::Protocol::Tcp}; }

desired::EndpointListPtr endpoints(const std::vector<const char*>& texts) {
  desired::EndpointList list;
  for (const char* text : texts) {
    list.push_back(at(text));
  }
  std::ranges::sort(list);
  return list.empty() ? nullptr : std::make_shared<const desired::EndpointList>(std::move(list));
}

FrontendPlan plan_of(const std::vector<const char*>& texts, Reach reach = Reach::Internal) {
  FrontendPlan plan;
  plan.service = "shop/web:http";
  plan.reach = reach;
  plan.endpoints = endpoints(texts);
  plan.fate = plan.endpoints ? desired::Fate::Balance : desired::Fate::Refuse;
  return plan;
}

// The back end over a kernel in memory, and the cluster that it is told of.
struct Node {
  std::shared_ptr<FakeIpvs> kernel = std::make_shared<FakeIpvs>();
  std::shared_ptr<FakeTable> table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  std::unique_ptr<IpvsBackend> backend;
  Settings settings;

  Node() {
    kernel->host = {ip("10.80.0.10")};
    wanted.node_port_cidrs = std::vector{*net::parse_cidr("0.0.0.0/0")};
    table->judge = [this](const nft::Transaction&) -> Result<> {
      kernel->story.emplace_back("table");
      return {};
    };
    start();
  }
  void start() {
    backend = std::make_unique<IpvsBackend>(
        settings,
        std::make_unique<test::FakeIpvsKernel>(kernel),
        [&](nft::NftBackend::Share share) {
          nft::ProgramSettings program;
          program.local_mark = 0x2000;
          return std::make_unique<nft::NftBackend>(
              net::Family::IPv4,
              program,
              std::make_unique<test::FakeTransport>(table),
              std::make_unique<test::FakePurger>(std::make_shared<test::FakePurger::Purges>()),
              nft::NftBackend::OpenFeed{},
              std::move(share));
        });
  }
  void set(const char* frontend, const FrontendPlan& plan) {
    const net::SocketAddress address = at(frontend);
    set(FrontendKey{address.ip, net::Protocol::Tcp, address.port}, plan);
  }
  void set(const FrontendKey& key, const FrontendPlan& plan) {
    std::vector<desired::Conflict> conflicts;
    wanted.set_service(
        {"shop", to_string(key)},
        {},
        {{key, std::make_shared<const FrontendPlan>(plan)}},
        delta.frontends,
        conflicts);
  }
  void remove(const FrontendKey& key) {
    std::vector<desired::Conflict> conflicts;
    wanted.set_service({"shop", to_string(key)}, {}, {}, delta.frontends, conflicts);
  }
  ApplyReport apply() {
    kernel->story.clear();
    auto report = backend->apply(wanted, std::exchange(delta, {}));
    INFO((report.outcome ? "" : report.outcome.error().what));
    CHECK(report.outcome);
    return report;
  }
  std::map<net::SocketAddress, std::uint32_t> weights(const ServerKey& server) const {
    std::map<net::SocketAddress, std::uint32_t> out;
    for (const auto& [address, real] : kernel->servers.at(server).reals) {
      out.emplace(address, real.weight);
    }
    return out;
  }
  FakeIpvs::Real& real(const ServerKey& server, const char* address) {
    return kernel->servers.at(server).reals.at(at(address));
  }
  std::size_t elements(nft::SetId set) const {
    return table->sets[static_cast<std::size_t>(set)].size();
  }
};

using Weights = std::map<net::SocketAddress, std::uint32_t>;

TEST_CASE("a frontend is a virtual server, an address that is not local, and no slots") {
  Node node;
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080", "10.64.1.5:8080"}));
  node.apply();
  CHECK(
      node.weights(tcp("10.112.0.10:80")) ==
      Weights{{at("10.64.0.5:8080"), 1}, {at("10.64.1.5:8080"), 1}});
  CHECK(node.kernel->servers.at(tcp("10.112.0.10:80")).attributes.scheduler == "rr");
  CHECK(node.kernel->bound == std::set{ip("10.112.0.10")});
  CHECK(node.kernel->local.empty());
  CHECK(node.kernel->routed == std::set{ip("10.112.0.10")});
  CHECK(node.elements(nft::SetId::ServiceIps) == 1);
  CHECK(node.elements(nft::SetId::IpvsIps) == 1);
  CHECK(node.elements(nft::SetId::IpvsAddresses) == 1);
  CHECK(node.elements(nft::SetId::Endpoints) == 0);
}

TEST_CASE("a restart that finds what it wants writes nothing") {
  Node node;
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
  node.set(
      desired::node_port_key(net::Family::IPv4, net::Protocol::Tcp, net::Port{30080}),
      plan_of({"10.64.0.5:8080"}, Reach::External));
  node.apply();
  node.start();
  const auto before = node.kernel->commands;
  const auto report = node.apply();
  CHECK(report.cost.commits == 0);
  CHECK(node.kernel->commands == before + 2);  // the scheduler is tried
}

TEST_CASE("a flip costs the same commands whatever else there is") {
  Node node;
  std::vector<std::uint64_t> costs;
  for (const int services : {1, 200}) {
    for (int i = 1; i < services; ++i) {
      node.set(
          ("10.112.1." + std::to_string(i) + ":80").c_str(),
          plan_of({"10.64.2.1:1", "10.64.2.2:1"}));
    }
    node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080", "10.64.1.5:8080"}));
    node.apply();
    node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
    costs.push_back(node.apply().cost.messages);
    node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080", "10.64.1.5:8080"}));
    costs.push_back(node.apply().cost.messages);
  }
  CHECK(costs == std::vector<std::uint64_t>{3, 1, 3, 1});  // no weight, count, gone; there
}

TEST_CASE("an endpoint with connections gets no new ones, and leaves when they have ended") {
  Node node;
  const ServerKey server = tcp("10.112.0.10:80");
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080", "10.64.1.5:8080"}));
  node.apply();
  node.real(server, "10.64.1.5:8080").active = 2;
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
  auto report = node.apply();
  CHECK(node.weights(server) == Weights{{at("10.64.0.5:8080"), 1}, {at("10.64.1.5:8080"), 0}});
  REQUIRE(report.again_in);
  CHECK(*report.again_in <= IpvsBackend::kDrainPeriod);

  SECTION("it comes back while it drains") {
    node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080", "10.64.1.5:8080"}));
    node.apply();
    CHECK(node.real(server, "10.64.1.5:8080").weight == 1);
    CHECK(node.real(server, "10.64.1.5:8080").active == 2);  // they were not cut
  }
  SECTION("somebody else flips meanwhile") {
    node.real(server, "10.64.1.5:8080").active = 0;
    node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080", "10.64.2.5:8080"}));
    node.apply();
    CHECK(node.weights(server) == Weights{{at("10.64.0.5:8080"), 1}, {at("10.64.2.5:8080"), 1}});
  }
  SECTION("a restart finds it") {
    node.start();
    node.apply();
    CHECK(node.real(server, "10.64.1.5:8080").weight == 0);
    node.real(server, "10.64.1.5:8080").active = 0;
    node.start();
    node.apply();
    CHECK(node.weights(server) == Weights{{at("10.64.0.5:8080"), 1}});
  }
  SECTION("the Service goes") {
    node.remove({ip("10.112.0.10"), net::Protocol::Tcp, net::Port{80}});
    node.apply();
    CHECK(node.kernel->servers.empty());
    CHECK(node.kernel->bound.empty());
    CHECK(node.kernel->routed.empty());
    CHECK(node.elements(nft::SetId::IpvsIps) == 0);
    CHECK(node.elements(nft::SetId::IpvsAddresses) == 0);
  }
}

TEST_CASE("nobody who may not connect meets an endpoint before the table knows") {
  Node node;
  FrontendPlan plan = plan_of({"10.64.0.5:8080"}, Reach::External);
  plan.sources = std::make_shared<const std::vector<net::Cidr>>(
      std::vector{*net::parse_cidr("198.51.100.0/25")});
  node.set("10.112.0.10:80", plan_of({}));
  node.apply();
  node.set("192.0.2.5:80", plan);
  node.apply();
  CHECK(
      node.kernel->story ==
      std::vector<std::string>{"add 192.0.2.5:80", "table", "real 10.64.0.5:8080"});
}

TEST_CASE("the table goes first when a frontend goes") {
  Node node;
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
  node.apply();
  node.remove({ip("10.112.0.10"), net::Protocol::Tcp, net::Port{80}});
  node.apply();
  CHECK(node.kernel->story == std::vector<std::string>{"table", "remove 10.112.0.10:80"});
}

TEST_CASE("NodePorts have a server at each address of the node, and follow it") {
  Node node;
  const FrontendKey port =
      desired::node_port_key(net::Family::IPv4, net::Protocol::Tcp, net::Port{30080});
  node.set(port, plan_of({"10.64.0.5:8080"}, Reach::External));
  node.apply();
  CHECK(node.kernel->servers.contains(tcp("10.80.0.10:30080")));
  CHECK(node.kernel->bound.empty());

  node.kernel->host = {ip("10.80.0.11"), ip("10.80.1.11")};
  node.kernel->host_changed = true;
  node.backend->take_drift();
  CHECK(node.backend->has_news());
  node.apply();
  CHECK_FALSE(node.backend->has_news());
  CHECK(node.kernel->servers.size() == 2);
  CHECK(node.kernel->servers.contains(tcp("10.80.1.11:30080")));
}

TEST_CASE("what is not known yet of NodePorts leaves them as they were") {
  Node node;
  const FrontendKey port =
      desired::node_port_key(net::Family::IPv4, net::Protocol::Tcp, net::Port{30080});
  node.set(port, plan_of({"10.64.0.5:8080"}, Reach::External));
  node.apply();
  node.start();
  const auto ranges = std::exchange(node.wanted.node_port_cidrs, std::nullopt);
  node.apply();
  CHECK(node.kernel->servers.contains(tcp("10.80.0.10:30080")));
  node.wanted.node_port_cidrs = std::vector{*net::parse_cidr("10.99.0.0/16")};
  node.delta.ranges = true;
  node.apply();
  CHECK(node.kernel->servers.empty());
}

TEST_CASE("an external address that the host has is not bound") {
  Node node;
  node.kernel->host.insert(ip("203.0.113.5"));
  node.set("203.0.113.5:80", plan_of({"10.64.0.5:8080"}, Reach::External));
  node.apply();
  CHECK(node.kernel->servers.contains(tcp("203.0.113.5:80")));
  CHECK(node.kernel->bound.empty());
  node.kernel->host.erase(ip("203.0.113.5"));
  node.kernel->host_changed = true;
  node.backend->take_drift();
  node.apply();
  CHECK(node.kernel->bound == std::set{ip("203.0.113.5")});
}

TEST_CASE("what was found goes unless it is excluded") {
  Node node;
  const netlink::ipvs::Server found{tcp("10.112.9.9:80"), "rr", 0, {}, 0};
  const netlink::ipvs::Server excluded{tcp("172.20.0.1:80"), "wlc", 0, {}, 0};
  node.kernel->servers = {{found.key, {found, {}}}, {excluded.key, {excluded, {}}}};
  node.kernel->bound = node.kernel->local = {ip("10.112.9.9"), ip("10.112.0.10")};
  node.settings.exclude_cidrs = {*net::parse_cidr("172.20.0.0/16")};
  node.start();
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
  node.apply();
  CHECK(node.kernel->servers.size() == 2);
  CHECK(node.kernel->servers.contains(excluded.key));
  CHECK(node.kernel->bound == std::set{ip("10.112.0.10")});
  CHECK(node.kernel->local.empty());  // as kube-proxy had it
}

TEST_CASE("affinity is the table's, and the server tells of it") {
  Node node;
  FrontendPlan plan = plan_of({"10.64.0.5:8080"});
  plan.affinity.emplace();
  plan.affinity->timeout = std::chrono::seconds(600);
  plan.affinity->group = {ip("10.112.0.10"), net::Protocol::Tcp, net::Port{80}};
  node.set("10.112.0.10:80", plan);
  node.apply();
  const auto& server = node.kernel->servers.at(tcp("10.112.0.10:80")).attributes;
  CHECK(server.flags == netlink::ipvs::kPersistent);
  CHECK(server.timeout == std::chrono::seconds(600));
  CHECK(node.elements(nft::SetId::Endpoints) == 1);
}

TEST_CASE("policy Local: outsiders by IPVS, the short cut by the table") {
  Node node;
  FrontendPlan plan = plan_of({"10.64.0.5:8080", "10.64.1.5:8080"}, Reach::ExternalLocal);
  SECTION("with local endpoints") {
    plan.local_endpoints = endpoints({"10.64.0.5:8080"});
    node.set("192.0.2.5:80", plan);
    node.apply();
    CHECK(node.weights(tcp("192.0.2.5:80")) == Weights{{at("10.64.0.5:8080"), 1}});
  }
  SECTION("without: all of them, for who looks") {
    plan.fate = desired::Fate::Drop;
    node.set("192.0.2.5:80", plan);
    node.apply();
    CHECK(node.weights(tcp("192.0.2.5:80")).size() == 2);
    CHECK(node.elements(nft::SetId::DroppedIps) == 1);
  }
  CHECK(node.elements(nft::SetId::Endpoints) == 2);
  CHECK(node.elements(nft::SetId::LocalEndpoints) == 0);
}

TEST_CASE("what annotations wish is done where the kernel can") {
  Node node;
  FrontendPlan plan = plan_of({"10.64.0.5:8080", "10.64.1.5:8080"});
  desired::IpvsWishes wishes;
  wishes.scheduler = "wrr";
  wishes.weights = {{at("10.64.1.5:8080"), 5}};
  plan.ipvs = std::make_shared<const desired::IpvsWishes>(wishes);
  node.set("10.112.0.10:80", plan);
  wishes.scheduler = "nq";  // this kernel has none
  plan.ipvs = std::make_shared<const desired::IpvsWishes>(wishes);
  node.set("10.112.0.11:80", plan);
  node.apply();
  CHECK(node.kernel->servers.at(tcp("10.112.0.10:80")).attributes.scheduler == "wrr");
  CHECK(node.kernel->servers.at(tcp("10.112.0.11:80")).attributes.scheduler == "rr");
  CHECK(
      node.weights(tcp("10.112.0.10:80")) ==
      Weights{{at("10.64.0.5:8080"), 1}, {at("10.64.1.5:8080"), 5}});
  // Another scheduler is a change in place.
  wishes.scheduler = "lc";
  plan.ipvs = std::make_shared<const desired::IpvsWishes>(wishes);
  node.real(tcp("10.112.0.10:80"), "10.64.1.5:8080").active = 3;
  node.set("10.112.0.10:80", plan);
  node.apply();
  CHECK(node.kernel->servers.at(tcp("10.112.0.10:80")).attributes.scheduler == "lc");
  CHECK(node.real(tcp("10.112.0.10:80"), "10.64.1.5:8080").active == 3);
}

TEST_CASE("a frontend that IPVS refuses harms no other, and no packet reaches the host by it") {
  Node node;
  node.kernel->judge = [](const Command& command) -> std::optional<Errc> {
    return command.server.key == tcp("10.112.0.11:80") ? std::optional(Errc::Invalid)
                                                       : std::nullopt;
  };
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
  node.set("10.112.0.11:80", plan_of({"10.64.0.5:8080"}));
  auto report = node.apply();
  REQUIRE(report.set_aside.size() == 1);
  CHECK(report.set_aside.front().frontend.ip == ip("10.112.0.11"));
  CHECK(node.kernel->servers.size() == 1);
  CHECK(node.elements(nft::SetId::IpvsIps) == 1);
  node.kernel->judge = {};
  node.delta.frontends = {report.set_aside.front().frontend};
  report = node.apply();
  CHECK(report.accepted.size() == 1);
  CHECK(node.kernel->servers.size() == 2);
  CHECK(node.elements(nft::SetId::IpvsIps) == 2);
}

TEST_CASE("a kernel that is not what it was left as is read again") {
  Node node;
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080", "10.64.1.5:8080"}));
  node.set("10.112.0.11:80", plan_of({"10.64.0.5:8080"}));
  node.apply();
  node.kernel->servers.clear();  // ipvsadm -C
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
  node.apply();
  CHECK(node.kernel->servers.size() == 2);
  CHECK(node.weights(tcp("10.112.0.10:80")) == Weights{{at("10.64.0.5:8080"), 1}});
}

TEST_CASE("a rule that somebody took away is told of once, and back with the next apply") {
  Node node;
  node.set("10.96.0.1:80", plan_of({"10.64.0.1:8080"}));
  node.apply();
  CHECK(node.backend->take_drift().empty());
  node.kernel->rules_changed = true;  // somebody else's
  CHECK(node.backend->take_drift().empty());

  node.kernel->rules_changed = true;
  node.kernel->set_up = false;
  const auto drift = node.backend->take_drift();
  REQUIRE(drift.size() == 1);
  CHECK(drift[0].kind == "routing-rule");
  CHECK(drift[0].removed);
  node.kernel->rules_changed = true;
  CHECK(node.backend->take_drift().empty());
  CHECK(node.apply().cost.commits == 0);
  CHECK(node.kernel->set_up);
}

TEST_CASE("cleanup leaves nothing of ours and everything of others") {
  Node node;
  const netlink::ipvs::Server others{tcp("172.20.0.1:80"), "wlc", 0, {}, 0};
  node.settings.exclude_cidrs = {*net::parse_cidr("172.20.0.0/16")};
  node.kernel->servers = {{others.key, {others, {}}}};
  node.start();
  node.set("10.112.0.10:80", plan_of({"10.64.0.5:8080"}));
  node.apply();
  node.start();
  CHECK(node.backend->cleanup());
  CHECK(node.kernel->servers.size() == 1);
  CHECK(node.kernel->bound.empty());
  CHECK_FALSE(node.table->exists);
}

// Whatever the order of changes, the kernel ends as a fresh start would make it.
TEST_CASE("random changes end where a fresh start ends") {
  std::mt19937 random(7);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  Node node;
  for (int round = 0; round < 300; ++round) {
    const std::string frontend = "10.112.0." + std::to_string(1 + below(6)) + ":80";
    if (below(5) == 0) {
      node.remove({at(frontend.c_str()).ip, net::Protocol::Tcp, net::Port{80}});
    } else {
      std::vector<std::string> names;
      for (unsigned e = 1; e < 6; ++e) {
        if (below(2) == 0) {
          names.push_back("10.64.0." + std::to_string(e) + ":8080");
        }
      }
      std::vector<const char*> texts;
      texts.reserve(names.size());
      for (const std::string& name : names) {
        texts.push_back(name.c_str());
      }
      node.set(frontend.c_str(), plan_of(texts, below(3) == 0 ? Reach::External : Reach::Internal));
    }
    for (auto& [key, server] : node.kernel->servers) {
      for (auto& [address, real] : server.reals) {
        real.active = real.weight > 0 && below(4) == 0 ? 1 : 0;
      }
    }
    node.apply();
  }
  for (auto& [key, server] : node.kernel->servers) {
    for (auto& [address, real] : server.reals) {
      real.active = 0;
    }
  }
  node.delta.everything = true;
  node.apply();
  Node fresh;
  fresh.wanted = node.wanted;
  fresh.apply();
  REQUIRE(node.kernel->servers.size() == fresh.kernel->servers.size());
  for (const auto& [key, server] : fresh.kernel->servers) {
    CHECK(node.weights(key) == fresh.weights(key));
  }
  CHECK(node.kernel->bound == fresh.kernel->bound);
  CHECK(node.kernel->routed == fresh.kernel->routed);
}

}  // namespace
}  // namespace shunt::backend::ipvs
