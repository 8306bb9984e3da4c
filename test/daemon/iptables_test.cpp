// Mode iptables beside everybody else who has rules on a node.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/iptables_world.h"
#include "daemon/load.h"
#include "daemon/load_time.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

int repairs(const World& world) {
  int out = 0;
  const nlohmann::json status = world.settle();
  if (status.contains("drift")) {
    for (const nlohmann::json& kinds : status.at("drift")) {
      for (const nlohmann::json& number : kinds) {
        out += number.get<int>();
      }
    }
  }
  return out;
}

lab::Answer ask_web(const World& world, milliseconds timeout = 1000ms) {
  lab::Question question;
  question.from = address("198.51.100.7:0");
  question.to = address("10.112.0.10:80");
  question.timeout = timeout;
  return ask(world.lab().outside(), question);
}

// Until a new connection is answered.
milliseconds time_to_an_answer(const World& world) {
  const auto begin = SteadyClock::now();
  while (ask_web(world, 10ms).kind != lab::Answer::Kind::Answered &&
         SteadyClock::now() - begin < 10s) {
  }
  return std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin);
}

struct Blow {
  const char* what;
  std::string command;
};

std::vector<Blow> blows(const std::string& variant) {
  const std::string ipt = "iptables-" + variant + " -w 5 ";
  const std::string portals = "-m comment --comment 'kubernetes service portals' -j KUBE-SERVICES";
  const std::string whole_nat =
      variant == "nft" ? "nft delete table ip nat" : ipt + "-t nat -F && " + ipt + "-t nat -X";
  return {
      {"a jump", ipt + "-t nat -D PREROUTING " + portals},
      {"a chain",
       ipt + "-t nat -F KUBE-SERVICES && c=$(" + ipt +
           "-t nat -S | sed -n 's/^-N \\(KUBE-SVC-.*\\)/\\1/p') && " + ipt + "-t nat -F $c && " +
           ipt + "-t nat -X $c"},
      {"a jump of table filter",
       ipt + "-t filter -D FORWARD -m comment --comment 'kubernetes forwarding rules' -j "
             "KUBE-FORWARD"},
      {"table nat", whole_nat}};
}

TEST_CASE("endurance: iptables' jumps, chains and the whole of table nat go away under load") {
  for (const std::string variant : {"nft", "legacy"}) {
    DYNAMIC_SECTION(variant) {
      SHUNT_NEEDS_IPTABLES(variant);
      Shop shop(configured_by_file());
      World& world = shop.world;
      restore_rules(world, variant, kubelet_rules());
      restore_rules(world, variant, plugin_rules());
      const std::string foreign = foreign_rules(world, variant);
      start_in_mode(world, "iptables");  // the variant is that of the kubelet
      world.await_log("the " + variant + " variant: the kubelet's chains are there");
      REQUIRE(ask_web(world).kind == lab::Answer::Kind::Answered);
      REQUIRE(saved_rules(world, variant).find("KUBE-SVC-") != std::string::npos);
      CHECK(foreign_rules(world, variant) == foreign);

      struct Window {
        milliseconds begin;
        milliseconds end;
      };
      std::vector<Window> windows;
      const auto begin = SteadyClock::now();
      const auto now = [&] {
        return std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin);
      };
      const auto kinds = blows(variant);
      const int times = std::max(4, static_cast<int>(load_time() / 5s));
      milliseconds worst{0};
      Load load(world, load_time());
      strike(times, load_time(), [&](int i) {
        const Blow& blow = kinds[static_cast<std::size_t>(i) % kinds.size()];
        const int before = repairs(world);
        Window window{now(), {}};
        world.on_node(blow.command);
        const bool whole = std::string(blow.what) == "table nat";
        if (whole) {  // whose owners see to theirs, as we to ours
          restore_rules(world, variant, plugin_rules());
        }
        const milliseconds took = time_to_an_answer(world);
        window.end = now();
        windows.push_back(window);
        worst = std::max(worst, took);
        INFO(blow.what << " was gone for " << took.count() << " ms");
        CHECK(took < 1s);
        while (repairs(world) == before && now() < window.begin + 2s) {
          std::this_thread::sleep_for(20ms);
        }
        CHECK(repairs(world) > before);
        CHECK(now() < window.begin + 2s);
        CHECK(foreign_rules(world, variant) == foreign);
      });
      const lab::LoadReport report = load.report();
      INFO(to_text(report));
      std::printf(
          "iptables-%s: %d x something of ours removed under load, an answer within %lld ms at "
          "most; "
          "%zu of %zu connections failed\n",
          variant.c_str(),
          times,
          static_cast<long long>(worst.count()),
          report.unanswered(),
          report.total());
      for (const lab::LoadReport::Failure& failure : report.failures) {
        INFO("begun at " << failure.begun.count() << ", ended at " << failure.ended.count());
        CHECK(std::ranges::any_of(windows, [&](const Window& window) {
          return failure.ended >= window.begin && failure.begun <= window.end + 50ms;
        }));
      }
      CHECK(foreign_rules(world, variant) == foreign);
      const std::string metrics = world.get(10249, "/metrics").body;
      CHECK(metrics.find("kubeshunt_drift_repairs_total{") != std::string::npos);
    }
  }
}

TEST_CASE("iptables' lock is held for longer than anybody waits, and nothing is lost") {
  SHUNT_NEEDS_IPTABLES("legacy");
  Shop shop(configured_by_file());
  World& world = shop.world;
  start_in_mode(world, "iptables", with_variant("legacy"));
  world.on_node("flock /run/xtables.lock sleep 7 >/dev/null 2>&1 & sleep 0.3");
  world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  world.await_log("xtables lock");
  world.settle();
  for (int i = 0; i < 8; ++i) {
    CHECK(ask_web(world).by == "two");
  }
  CHECK(saved_rules(world, "legacy").find("10.64.0.1:8080") == std::string::npos);
}

TEST_CASE(
    "the variant of iptables is that of most rules, said in the log, and the other one stays "
    "empty") {
  const std::string variant = GENERATE(as<std::string>{}, "nft", "legacy");
  SHUNT_NEEDS_IPTABLES(variant);
  const std::string other = variant == "nft" ? "legacy" : "nft";
  Shop shop(configured_by_file());
  World& world = shop.world;
  restore_rules(world, variant, plugin_rules());
  start_in_mode(world, "iptables");
  world.await_log("the " + variant + " variant: most rules of this host are there");
  CHECK(saved_rules(world, variant).find("KUBE-SERVICES") != std::string::npos);
  CHECK(saved_rules(world, other).find("KUBE-") == std::string::npos);
  CHECK(ask_web(world).kind == lab::Answer::Kind::Answered);
  CHECK(world.get(10256, "/readyz").status == 200);
}

TEST_CASE("--cleanup in mode iptables leaves what is not ours, byte by byte") {
  const std::string variant = GENERATE(as<std::string>{}, "nft", "legacy");
  const bool mode_given = GENERATE(true, false);
  SHUNT_NEEDS_IPTABLES(variant);
  Shop shop(configured_by_file());
  World& world = shop.world;
  restore_rules(world, variant, kubelet_rules());
  restore_rules(world, variant, plugin_rules());
  const std::string before = saved_rules(world, variant);
  start_in_mode(world, "iptables");
  REQUIRE(saved_rules(world, variant) != before);
  CHECK(world.stop_daemon() == 0);
  CHECK(saved_rules(world, variant) != before);  // a stop leaves everything in force
  CHECK(ask_web(world).kind == lab::Answer::Kind::Answered);
  std::string cleanup = world.program("kube-shunt") + " --cleanup";
  if (mode_given) {
    cleanup += " --config " + world.directory() + "/config.yaml";
  } else {
    // With its canary the chains are kube-proxy's, and it alone takes them away; here in one
    // family.
    restore_rules(world, variant, "*filter\n:KUBE-PROXY-CANARY - [0:0]\nCOMMIT\n");
    const std::string with_canary = saved_rules(world, variant);
    world.on_node(cleanup);
    CHECK(saved_rules(world, variant) == with_canary);
    restore_rules(world, variant, "*filter\n-X KUBE-PROXY-CANARY\nCOMMIT\n");
  }
  world.on_node(cleanup);
  CHECK(saved_rules(world, variant) == before);
  CHECK(world.on_node("nft list tables | grep kube-shunt || true").empty());
}

TEST_CASE("mode iptables lives on CAP_NET_ADMIN, and for the legacy variant CAP_NET_RAW") {
  const std::string variant = GENERATE(as<std::string>{}, "nft", "legacy");
  SHUNT_NEEDS_IPTABLES(variant);
  const std::string rights = variant == "nft" ? "-all,+net_admin" : "-all,+net_admin,+net_raw";
  World::Options options = configured_by_file();
  options.daemon_prefix = {
      "setpriv", "--bounding-set=" + rights, "--inh-caps=" + rights, "--no-new-privs", "--"};
  Shop shop(options);
  start_in_mode(shop.world, "iptables", with_variant(variant));
  CHECK(ask_web(shop.world).kind == lab::Answer::Kind::Answered);
  CHECK(shop.world.get(10256, "/readyz").status == 200);
}

// In the place of iptables-restore: refuses whatever names this Service, as a kernel would that
// cannot do what it wants.
void refuse_service(const World& world, const std::string& variant, const std::string& name) {
  const std::string program = "iptables-" + variant + "-restore";
  const std::string path = world.directory() + "/" + program;
  std::ofstream(path) << "#!/bin/sh\n"
                      << "case $1 in -V) exec /usr/sbin/" << program << " -V ;; esac\n"
                      << "input=$(cat)\n"
                      << "case $input in *'" << name << "'*)\n"
                      << "  echo 'iptables-restore: line 7 failed' >&2; exit 1 ;; esac\n"
                      << "printf '%s\\n' \"$input\" | exec /usr/sbin/" << program << " \"$@\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST_CASE("a Service that iptables refuses is found among 200, named, and the others work") {
  const std::string variant = GENERATE(as<std::string>{}, "nft", "legacy");
  SHUNT_NEEDS_IPTABLES(variant);
  World::Options options = configured_by_file();
  Shop shop(options);
  World& world = shop.world;
  std::vector<nlohmann::json> others;
  for (int i = 0; i < 200; ++i) {
    const std::string name = i == 77 ? "refused" : "s" + std::to_string(i);
    others.push_back(service(name, {"10.112.1." + std::to_string(1 + i)}));
    others.push_back(slice(name, "IPv4", {"10.64.0.1"}));
  }
  world.apply(others);
  refuse_service(world, variant, "ns/refused");
  world.set_daemon_prefix({"env", "PATH=" + world.directory() + ":/usr/sbin:/usr/bin:/sbin:/bin"});
  start_in_mode(world, "iptables", with_variant(variant));
  CHECK(world.status()->at("setAside") == 1);
  CHECK(world.daemon_log().find("ns/refused") != std::string::npos);
  CHECK(ask_web(world).kind == lab::Answer::Kind::Answered);
  const std::string rules = saved_rules(world, variant);
  CHECK(rules.find("ns/s199:p cluster IP") != std::string::npos);
  CHECK(rules.find("ns/refused") == std::string::npos);

  world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  world.settle();
  CHECK(ask_web(world).by == "two");
}

TEST_CASE("neither our changes nor others' make the iptables mode read its rules again") {
  SHUNT_NEEDS_IPTABLES("nft");
  Shop shop(configured_by_file());
  World& world = shop.world;
  for (const char* program : {"iptables-nft-save", "ip6tables-nft-save"}) {
    const std::string path = world.directory() + "/" + program;
    std::ofstream(path) << "#!/bin/sh\necho >>" << world.directory() << "/reads\nexec /usr/sbin/"
                        << program << " \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  world.set_daemon_prefix({"env", "PATH=" + world.directory() + ":/usr/sbin:/usr/bin:/sbin:/bin"});
  start_in_mode(world, "iptables", with_variant("nft"));
  std::this_thread::sleep_for(1200ms);  // two looks
  const auto reads = [&] { return world.on_node("wc -l <" + world.directory() + "/reads"); };
  const std::string before = reads();
  for (const char* endpoint : {"10.64.0.2", "10.64.0.3", "10.64.0.1"}) {
    world.apply({slice("web", "IPv4", {endpoint})});
    world.settle();
    restore_rules(world, "nft", "*nat\n:CNI-OTHER - [0:0]\n-A CNI-OTHER -j RETURN\nCOMMIT\n");
    std::this_thread::sleep_for(700ms);
  }
  CHECK(reads() == before);
  CHECK(ask_web(world).by == "one");
  world.on_node("iptables-nft -t nat -F KUBE-SERVICES");
  CHECK(time_to_an_answer(world) < 1s);
  CHECK(reads() != before);
}

TEST_CASE("a restart in mode iptables writes nothing") {
  const std::string variant = GENERATE(as<std::string>{}, "nft", "legacy");
  SHUNT_NEEDS_IPTABLES(variant);
  Shop shop(configured_by_file());
  World& world = shop.world;
  start_in_mode(world, "iptables", with_variant(variant));
  const std::string rules = saved_rules(world, variant);
  world.kill_daemon();
  world.start_daemon();
  CHECK(world.settle().at("commits") == 0);
  CHECK(saved_rules(world, variant) == rules);
}

}  // namespace
}  // namespace shunt::test
