// What one change gives iptables-restore, through the whole daemon, with 200 Services beside it and
// with 5 000: the same bytes. How long it takes is printed, beside a restore of nothing.

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/iptables_world.h"

namespace shunt::test {
namespace {

using nlohmann::json;

struct Bytes {
  std::uint64_t commits = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Bytes&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Bytes& cost) {
  return out << cost.commits << " restores, " << cost.bytes << " bytes";
}

double milliseconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Changes of one Service among so many, in mode iptables.
class AmongOthers {
 public:
  AmongOthers(const std::string& variant, unsigned services) : variant_(variant) {
    std::vector<json> objects;
    for (unsigned i = 0; i < services; ++i) {
      const std::string name = "load-" + std::to_string(i);
      objects.push_back(service(
          name, {"10.112." + std::to_string(1 + i / 250) + "." + std::to_string(1 + i % 250)}));
      objects.push_back(slice(name, "IPv4", {"10.64.0.1", "10.64.0.2"}));
    }
    world_.apply(objects);
    world_.apply(
        {service("web", {"10.112.200.1"}), slice("web", "IPv4", {"10.64.0.1", "10.64.0.2"})});
    const double first =
        milliseconds_of([&] { start_in_mode(world_, "iptables", with_variant(variant)); });
    measure("another endpoint", [&] { change({"10.64.0.1", "10.64.0.3"}); });
    measure("one endpoint more", [&] { change({"10.64.0.1", "10.64.0.3", "10.64.0.4"}); });
    measure("no endpoint", [&] { change({}); });
    measure("endpoints again", [&] { change({"10.64.0.1", "10.64.0.2"}); });
    measure("a Service goes", [&] { world_.remove("Service", "web"); });
    const double nothing = milliseconds_of([&] {
      world_.on_node("echo '*nat\nCOMMIT' | iptables-" + variant + "-restore --noflush");
    });
    std::printf(
        "iptables-%s, %u Services: first sync %.0f ms; another endpoint %.0f ms, API server and "
        "all; "
        "a restore of nothing %.0f ms\n",
        variant.c_str(),
        services,
        first,
        times_["another endpoint"],
        nothing);
  }

  std::map<std::string, Bytes> costs;

 private:
  void change(const std::vector<std::string>& endpoints) {
    world_.apply({slice("web", "IPv4", endpoints)});
  }
  Bytes so_far() {
    const json status = world_.settle(std::chrono::seconds(60));
    return {status.at("commits").get<std::uint64_t>(), status.at("bytes").get<std::uint64_t>()};
  }
  void measure(const std::string& what, const std::function<void()>& change) {
    const Bytes before = so_far();
    times_[what] = milliseconds_of([&] {
      change();
      (void)so_far();
    });
    const Bytes after = so_far();
    costs[what] = {after.commits - before.commits, after.bytes - before.bytes};
  }

  std::string variant_;
  World world_{configured_by_file()};
  std::map<std::string, double> times_;
};

TEST_CASE("a change gives iptables-restore the same bytes among 200 Services and among 5 000") {
  for (const std::string variant : {"nft", "legacy"}) {
    DYNAMIC_SECTION(variant) {
      SHUNT_NEEDS_IPTABLES(variant);
      const AmongOthers few(variant, 200);
      const AmongOthers many(variant, 5'000);
      CHECK(few.costs.size() == 5);
      for (const auto& [what, cost] : few.costs) {
        CAPTURE(what);
        CHECK(many.costs.at(what) == cost);
        CHECK(cost.commits == 1);
        CHECK(cost.bytes > 0);
        CHECK(cost.bytes < 3'000);
      }
    }
  }
}

}  // namespace
}  // namespace shunt::test
