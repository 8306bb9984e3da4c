// What one change costs the whole daemon in netlink messages and bytes, with 200 Services beside it
// and with 2 000: the same. Nothing here looks at a clock.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/needs_root.h"
#include "daemon/world.h"

namespace shunt::test {
namespace {

using nlohmann::json;

struct Cost {
  std::uint64_t commits = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Cost&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Cost& cost) {
  return out << cost.commits << " transactions, " << cost.messages << " messages, " << cost.bytes
             << " bytes";
}

Cost so_far(const json& status) {
  return {
      status.at("commits").get<std::uint64_t>(),
      status.at("messages").get<std::uint64_t>(),
      status.at("bytes").get<std::uint64_t>()};
}

Cost operator-(const Cost& a, const Cost& b) {
  return {a.commits - b.commits, a.messages - b.messages, a.bytes - b.bytes};
}

// Pods 10.64.0.`first` and the `count` - 1 after it.
std::vector<std::string> pods(unsigned first, unsigned count) {
  std::vector<std::string> out;
  for (unsigned i = 0; i < count; ++i) {
    out.push_back("10.64.0." + std::to_string(first + i));
  }
  return out;
}

std::vector<json> cluster(unsigned services) {
  std::vector<json> objects;
  for (unsigned i = 0; i < services; ++i) {
    const std::string name = "load-" + std::to_string(i);
    const std::string ip =
        "10.112." + std::to_string(1 + i / 250) + "." + std::to_string(1 + i % 250);
    objects.push_back(service(name, {ip}));
    objects.push_back(slice(name, "IPv4", pods(1, 10)));
  }
  return objects;
}

// The daemon in a cluster of that many Services, and what has been measured there.
class Measured {
 public:
  explicit Measured(unsigned services) {
    world_.apply(cluster(services));
    world_.apply({service("web", {"10.112.200.1"}), slice("web", "IPv4", pods(1, 10))});
    world_.start_daemon();
    costs["first sync"] = so_far(world_.settle());

    measure("another endpoint", [&] { world_.apply({slice("web", "IPv4", pods(2, 10))}); });
    measure("one endpoint more", [&] { world_.apply({slice("web", "IPv4", pods(2, 11))}); });
    measure("one endpoint less", [&] { world_.apply({slice("web", "IPv4", pods(2, 10))}); });
    world_.apply({slice("web", "IPv4", pods(2, 8))});
    world_.settle();
    measure("more than the class holds", [&] { world_.apply({slice("web", "IPv4", pods(2, 9))}); });
    measure("a smaller class", [&] { world_.apply({slice("web", "IPv4", pods(2, 8))}); });

    world_.apply({slice("new", "IPv4", pods(1, 10))});
    world_.settle();
    measure("a new Service", [&] { world_.apply({service("new", {"10.112.200.2"})}); });
    measure("a Service goes", [&] { world_.remove("Service", "new"); });

    restart("SIGTERM", [&] { (void)world_.stop_daemon(); });
    restart("kill -9", [&] { world_.kill_daemon(); });
  }

  std::map<std::string, Cost> costs;

 private:
  void measure(const std::string& what, const std::function<void()>& change) {
    const Cost before = so_far(world_.settle());
    change();
    costs[what] = so_far(world_.settle()) - before;
  }
  void restart(const std::string& what, const std::function<void()>& end) {
    end();
    world_.start_daemon();
    costs[what] = so_far(world_.settle());
  }

  World world_{idle_world()};
  static World::Options idle_world() {
    World::Options options;
    options.start_daemon = false;
    return options;
  }
};

TEST_CASE("a change costs the same messages and bytes among 200 Services and among 2 000") {
  SHUNT_NEEDS_ROOT();
  const Measured small(200);
  const Measured large(2'000);

  // Deletions are one message a set, and so are additions.
  const std::map<std::string, std::uint64_t> most_messages{
      {"another endpoint", 2},           // the slot's old element, its new one
      {"one endpoint more", 1},          // a slot
      {"one endpoint less", 2},          // the hole is filled from the last slot
      {"more than the class holds", 3},  // a slot, and a class for another
      {"a smaller class", 4},
      {"a new Service", 4},  // cluster-ips, service-ips, slots, a class
      {"a Service goes", 4}};
  for (const auto& [what, limit] : most_messages) {
    CAPTURE(what, small.costs.at(what));
    CHECK(large.costs.at(what) == small.costs.at(what));
    CHECK(small.costs.at(what).commits == 1);
    CHECK(small.costs.at(what).messages > 0);
    CHECK(small.costs.at(what).messages <= limit);
    CHECK(small.costs.at(what).bytes < 1'000);
  }

  // A restart that finds nothing to change writes nothing.
  for (const Measured* measured : {&small, &large}) {
    CHECK(measured->costs.at("SIGTERM") == Cost{});
    CHECK(measured->costs.at("kill -9") == Cost{});
  }

  // The first sync takes few transactions, and more only for more elements: 13 a Service, some
  // 20 000 a transaction, with the programs of two families beside them.
  CHECK(small.costs.at("first sync").commits <= 6);
  CHECK(large.costs.at("first sync").commits <= 8);
  const Cost more = large.costs.at("first sync") - small.costs.at("first sync");
  CHECK(more.bytes / 1'800 > std::uint64_t{13} * 20);  // or not all of it was written
  CHECK(more.bytes / 1'800 < 1'200);
}

}  // namespace
}  // namespace shunt::test
