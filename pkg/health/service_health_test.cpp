#include "health/service_health.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "health/listen_addresses.h"
#include "http/testing/client.h"
#include "node/node_port_ranges.h"

// Status, body, headers and who listens when: the conformance bank (kind health) asks for them.
// Here stands what it does not.
namespace shunt::health {
namespace {

using net::Family;

net::IpAddress ip(const char* text) { return *net::parse_ip(text); }

desired::HealthCheck check(std::uint16_t port, std::size_t count = 1) {
  return {net::Port{port}, count};
}

// Listens nowhere. What is taken, is by somebody else.
struct FakeListeners : Listeners {
  Result<std::uint64_t> listen(const http::ListenAddress& address, http::Service service) override {
    ++tries;
    const std::string at = http::to_string(address);
    if (std::ranges::find(taken, at) != taken.end()) {
      return fail(Errc::Exists, "listen tcp " + at + ": bind: Address already in use");
    }
    for (const auto& [id, other] : open) {
      CHECK(other.first != at);
    }
    open.emplace(++last_id, std::pair(at, std::move(service)));
    return last_id;
  }
  void close(std::uint64_t id) override { CHECK(open.erase(id) == 1); }

  std::map<std::uint64_t, std::pair<std::string, http::Service>> open;
  std::vector<std::string> taken;
  int tries = 0;
  std::uint64_t last_id = 0;
};

struct World {
  World() {
    auto fake = std::make_unique<FakeListeners>();
    listeners = fake.get();
    health = std::make_unique<ServiceHealth>(
        ServiceHealth::Settings{
            "edge-a", {}, [this](const kube::Notice& notice) { notices.push_back(notice); }},
        std::move(fake));
  }
  void want(const char* name, std::optional<desired::HealthCheck> wanted) {
    health->update(Family::IPv4, {"ns", name}, wanted, std::string("uid-") + name);
  }
  void commit() { health->commit(Family::IPv4); }
  std::vector<std::string> listening() const {
    std::vector<std::string> out;
    for (const auto& [id, listener] : listeners->open) {
      out.push_back(listener.first);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  FakeListeners* listeners = nullptr;
  std::vector<kube::Notice> notices;
  std::unique_ptr<ServiceHealth> health;
};

using Addresses = std::vector<std::string>;

TEST_CASE("nothing happens before the commit, nor at one that follows no change") {
  World w;
  w.want("a", check(30000));
  CHECK(w.listening().empty());
  w.commit();
  CHECK(w.listening() == Addresses{"0.0.0.0:30000"});
  w.want("a", check(30000));
  w.commit();
  w.health->commit(Family::IPv6);
  CHECK(w.listeners->tries == 1);
  CHECK(w.health->size() == 1);
}

TEST_CASE("ports that two Services exchange are closed before they are opened") {
  World w;
  w.want("a", check(30001));
  w.want("b", check(30002));
  w.commit();
  w.want("a", check(30002));
  w.want("b", check(30001));
  w.commit();
  CHECK(w.listening() == Addresses{"0.0.0.0:30001", "0.0.0.0:30002"});
  CHECK(w.notices.empty());
}

TEST_CASE("a Service whose port is taken is told of once and tried at every commit") {
  World w;
  w.listeners->taken = {"10.80.1.10:30000"};
  w.health->set_addresses(Family::IPv4, {ip("10.80.1.10"), ip("10.80.0.10")});
  w.want("a", check(30000));
  w.want("b", check(30001));
  w.commit();
  CHECK(w.listening() == Addresses{"10.80.0.10:30001", "10.80.1.10:30001"});  // of a: none
  CHECK(w.health->waiting());
  w.commit();
  REQUIRE(w.notices.size() == 1);
  const kube::Notice& notice = w.notices[0];
  CHECK(notice.warning);
  CHECK(notice.object == kube::ObjectKey{"ns", "a"});
  CHECK(notice.uid == "uid-a");
  CHECK(notice.reason == "FailedToStartServiceHealthcheck");
  CHECK(notice.action == "Listen");
  CHECK(
      notice.note ==
      "node edge-a failed to start healthcheck \"ns/a\" on port 30000: listen tcp "
      "10.80.1.10:30000: bind: Address already in use");

  SECTION("until it works") {
    w.listeners->taken.clear();
    w.commit();
    CHECK(w.listening().size() == 4);
    CHECK_FALSE(w.health->waiting());
  }
  SECTION("until it wants another one") {
    w.want("a", check(30003));
    w.commit();
    CHECK(w.listening().size() == 4);
    CHECK_FALSE(w.health->waiting());
  }
  SECTION("until it is gone") {
    w.want("a", {});
    w.commit();
    CHECK_FALSE(w.health->waiting());
    CHECK(w.notices.size() == 1);
  }
}

TEST_CASE("listeners follow the addresses of the node, the difference alone") {
  World w;
  w.health->set_addresses(Family::IPv4, {ip("10.80.0.10")});
  w.want("a", check(30000));
  w.commit();
  w.health->set_addresses(Family::IPv4, {ip("10.80.0.10"), ip("10.80.1.10")});
  w.commit();
  CHECK(w.listening() == Addresses{"10.80.0.10:30000", "10.80.1.10:30000"});
  CHECK(w.listeners->tries == 2);
  w.health->set_addresses(Family::IPv4, {ip("10.80.1.10")});
  w.commit();
  CHECK(w.listening() == Addresses{"10.80.1.10:30000"});

  SECTION("an address that does not work out costs nobody what works") {
    w.listeners->taken = {"10.80.2.10:30000"};
    w.health->set_addresses(Family::IPv4, {ip("10.80.1.10"), ip("10.80.2.10")});
    w.commit();
    CHECK(w.listening() == Addresses{"10.80.1.10:30000"});
    CHECK(w.notices.size() == 1);
    w.listeners->taken.clear();
    w.commit();
    CHECK(w.listening().size() == 2);
  }
  SECTION("none at all") {
    w.health->set_addresses(Family::IPv4, {});
    w.commit();
    CHECK(w.listening().empty());
    w.health->set_addresses(Family::IPv4, {ip("0.0.0.0")});
    w.commit();
    CHECK(w.listening() == Addresses{"0.0.0.0:30000"});
  }
}

TEST_CASE("the families are apart") {
  World w;
  w.want("a", check(30000));
  w.health->update(Family::IPv6, {"ns", "a"}, check(30000));
  w.commit();
  CHECK(w.listening() == Addresses{"0.0.0.0:30000"});
  w.health->commit(Family::IPv6);
  CHECK(w.listening() == Addresses{"0.0.0.0:30000", "[::]:30000"});
  w.want("a", {});
  w.commit();
  CHECK(w.listening() == Addresses{"[::]:30000"});
}

TEST_CASE("names are quoted, whoever chose them") {
  CHECK(
      service_answer({"a\"b", "c\\\n"}, 1, true).body.find("\"namespace\": \"a\\\"b\"") !=
      std::string::npos);
  CHECK(service_answer({"a", "\n"}, 1, true).body.find("\\u000a") != std::string::npos);
}

TEST_CASE("over real sockets counts change without a listener being touched") {
  auto server = *http::Server::start("health-test");
  const net::Port port = http::testing::free_port();
  std::atomic<bool> healthy = true;
  ServiceHealth health(
      {"edge-a", [&healthy] { return healthy.load(); }, {}}, listeners_of(*server));
  health.set_addresses(Family::IPv4, {ip("127.0.0.1")});
  health.update(Family::IPv4, {"ns", "a"}, desired::HealthCheck{port, 2});
  health.commit(Family::IPv4);
  const auto ask = [&] {
    return http::testing::ask(http::testing::on_loopback(port), "POST /any/path HTTP/1.1\r\n\r\n");
  };
  REQUIRE(ask());
  CHECK(ask()->status == 200);
  CHECK(ask()->header("X-Load-Balancing-Endpoint-Weight") == "2");
  health.update(Family::IPv4, {"ns", "a"}, desired::HealthCheck{port, 0});
  CHECK(ask()->status == 200);  // not committed
  health.commit(Family::IPv4);
  CHECK(ask()->status == 503);
  health.update(Family::IPv4, {"ns", "a"}, desired::HealthCheck{port, 1});
  health.commit(Family::IPv4);
  healthy = false;
  CHECK(ask()->status == 503);
  health.update(Family::IPv4, {"ns", "a"}, {});
  health.commit(Family::IPv4);
  CHECK_FALSE(ask());
}

TEST_CASE("where health ports listen") {
  const std::vector interfaces{
      ip("10.80.0.10"),
      ip("127.0.0.1"),
      ip("10.80.0.10"),
      ip("fd80::10"),
      ip("fe80::1"),
      ip("::1")};
  const auto at = [&](Family family, std::vector<net::Cidr> setting) {
    return listen_addresses(family, node::node_port_ranges(setting, family), interfaces);
  };
  const net::Cidr node_v4 = *net::parse_cidr("10.80.0.0/16");
  CHECK(at(Family::IPv4, {}) == std::vector{ip("0.0.0.0")});
  CHECK(at(Family::IPv6, {}) == std::vector{ip("::")});
  CHECK(at(Family::IPv4, {node_v4}) == std::vector{ip("10.80.0.10")});
  CHECK(at(Family::IPv6, {node_v4}) == std::vector{ip("::")});  // ranges of the other family
  CHECK(at(Family::IPv4, {*net::parse_cidr("192.0.2.0/24")}).empty());
  // Link-local addresses cannot be listened on without their device.
  CHECK(at(Family::IPv6, {*net::parse_cidr("e000::/3")}) == std::vector{ip("fd80::10")});
  CHECK(
      listen_addresses(Family::IPv4, std::vector{node_v4}, std::nullopt) ==
      std::vector{ip("0.0.0.0")});
}

}  // namespace
}  // namespace shunt::health
