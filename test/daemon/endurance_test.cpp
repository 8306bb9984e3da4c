// What an operator does to a node in a year, in a minute, under 200 new connections a second: none
// of them may fail, but those of the very moments in which somebody emptied the kernel.

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/load.h"
#include "daemon/load_time.h"
#include "daemon/needs_root.h"
#include "leftovers/stand_ins.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

TEST_CASE("endurance: kill -9 and a new start, twenty times under load") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  Load load(shop.world, load_time());
  strike(20, load_time(), [&](int) {
    shop.world.kill_daemon();
    std::this_thread::sleep_for(50ms);
    shop.world.start_daemon();
    CHECK(shop.world.settle().at("commits") == 0);
  });
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  CHECK(report.unanswered() == 0);
  CHECK(report.total() > 0);
}

// A configuration that differs with each number: other rules, other NodePort addresses, another
// log level, all of which a running daemon takes over.
void write_config(const World& world, int number) {
  const std::string path = world.directory() + "/config.yaml";
  std::ofstream(path + ".new") << nlohmann::json{
      {"apiVersion", "kubeproxy.config.k8s.io/v1alpha1"},
      {"kind", "KubeProxyConfiguration"},
      {"mode", "nftables"},
      {"clusterCIDR", "10.64.0.0/14,fd64::/48"},
      {"nftables", {{"masqueradeAll", number % 2 == 1}}},
      {"nodePortAddresses", {number % 3 == 1 ? "10.80.0.0/24" : "primary"}},
      {"logging", {{"verbosity", number % 4 == 1 ? 2 : 0}}},
      {"conntrack", {{"maxPerCore", 0}}}};
  std::filesystem::rename(path + ".new", path);
}

World::Options without_daemon() {
  World::Options options;
  options.start_daemon = false;
  return options;
}

TEST_CASE("endurance: another configuration, twenty times under load") {
  SHUNT_NEEDS_ROOT();
  World::Options options = without_daemon();
  options.config_file = "config.yaml";
  Shop shop(options);
  write_config(shop.world, 0);
  shop.world.start_daemon();
  shop.world.settle();
  const pid_t before = shop.world.daemon_pid();
  Load load(shop.world, load_time());
  strike(20, load_time(), [&](int i) {
    write_config(shop.world, i + 1);
    shop.world.await_log("configuration read again", static_cast<std::size_t>(i) + 1);
    shop.world.settle();
    const auto now =
        nlohmann::json::parse(shop.world.get(10249, "/configz").body).at("kubeproxy.config.k8s.io");
    CHECK(now.at("nftables").at("masqueradeAll") == ((i + 1) % 2 == 1));
  });
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  CHECK(report.unanswered() == 0);
  CHECK(shop.world.daemon_pid() == before);
  CHECK(
      shop.world.get(10249, "/metrics")
          .body.find("kubeshunt_config_reloads_total{result=\"success\"} 20") != std::string::npos);
}

// Puts a file in the place of another, as a package manager does.
void replace(const std::string& path, const std::string& by) {
  std::filesystem::copy_file(by, path + ".new", std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(path + ".new", path);
}

TEST_CASE("endurance: a new program in the same process, ten times under load") {
  SHUNT_NEEDS_ROOT();
  World::Options options = without_daemon();
  options.daemon_program = "kube-shunt";
  Shop shop(options);
  const std::string program = shop.world.directory() + "/kube-shunt";
  replace(program, shop.world.program("kube-shunt"));
  shop.world.start_daemon();
  shop.world.settle();
  const pid_t pid = shop.world.daemon_pid();
  const std::string running = "/proc/" + std::to_string(pid) + "/exe";
  Load load(shop.world, load_time());
  strike(10, load_time(), [&](int i) {
    replace(program, shop.world.program("kube-shunt"));
    CHECK(std::filesystem::read_symlink(running) == program + " (deleted)");
    shop.world.signal_daemon(SIGUSR2);
    shop.world.await_log("kube-shunt starts", static_cast<std::size_t>(i) + 2);
    CHECK(shop.world.settle().at("commits") == 0);
    CHECK(std::filesystem::read_symlink(running) == program);
  });
  // One that would not run is not executed.
  replace(program, "/bin/false");
  shop.world.signal_daemon(SIGUSR2);
  shop.world.await_log("the program is not executed again");
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  CHECK(report.unanswered() == 0);
  CHECK(shop.world.daemon_pid() == pid);
  CHECK(shop.world.settle().at("synced") == true);
}

TEST_CASE("endurance: kube-proxy's rules, in each of its modes, are taken over under load") {
  SHUNT_NEEDS_ROOT();
  const struct {
    const char* name;
    std::string put;
    std::string look;
  } modes[] = {
      {"nftables",
       "cat > $D/nft <<'END'\n" + nftables_mode() + "END\nnft -f $D/nft",
       "nft list tables | grep -c kube-proxy || true"},
      {"iptables",
       "cat > $D/ipt <<'END'\n" + iptables_mode(net::Family::IPv4) +
           "END\niptables-nft-restore --noflush $D/ipt",
       "iptables-nft-save -t nat | grep -c KUBE-SERVICES || true"}};
  for (const auto& mode : modes) {
    DYNAMIC_SECTION(mode.name) {
      Shop shop(without_daemon());
      shop.world.on_node("D=" + shop.world.directory() + "\n" + mode.put);
      REQUIRE(shop.world.on_node(mode.look) != "0\n");
      Load load(shop.world, load_time());
      std::this_thread::sleep_for(load_time() / 3);
      shop.world.start_daemon();
      shop.world.settle();
      shop.world.await_log("removed what kube-proxy left");
      const lab::LoadReport report = load.report();
      INFO(to_text(report));
      INFO(shop.world.daemon_log());
      CHECK(report.unanswered() == 0);
      CHECK(report.answered.size() == 3);  // the stand-in knew one endpoint
      CHECK(shop.world.on_node(mode.look) == "0\n");
    }
  }
}

TEST_CASE("endurance: somebody empties the kernel again and again under load") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  struct Blow {
    milliseconds before;  // nft was started
    milliseconds after;   // nft had ended; on a busy machine that takes a while
  };
  std::vector<Blow> blows;
  const auto begin = SteadyClock::now();
  const auto now = [&] {
    return std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin);
  };
  // Three seconds apart, so that there is time between them in which nothing may fail: twenty in a
  // minute.
  const int times = std::max(3, static_cast<int>(load_time() / 3s));
  Load load(shop.world, load_time());
  strike(times, load_time(), [&](int) {
    const milliseconds before = now();
    shop.world.on_node("nft flush ruleset");
    blows.push_back({before, now()});
  });
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  std::printf(
      "%d x nft flush ruleset under load: %zu of %zu connections failed\n",
      times,
      report.unanswered(),
      report.total());
  // Those alone that were under way at such a moment; half a second is for a slow machine to mend.
  for (const auto& [begun, ended, why] : report.failures) {
    INFO("begun at " << begun.count() << ", ended at " << ended.count() << ", errno " << why);
    bool excused = false;
    for (const Blow& blow : blows) {
      excused = excused || (ended >= blow.before && begun <= blow.after + 500ms);
    }
    CHECK(excused);
  }
  CHECK(shop.world.settle().at("drift").at("IPv4").at("table").get<int>() >= times);
}

TEST_CASE("endurance: somebody empties the kernel twenty times, and the Service is back at once") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  milliseconds worst{0};
  std::string figures;
  for (int i = 0; i < 20; ++i) {
    shop.world.on_node("nft flush ruleset");
    const auto begin = SteadyClock::now();
    lab::Question question;
    question.from = address("198.51.100.7:0");
    question.to = address("10.112.0.10:80");
    question.timeout = 10ms;
    while (ask(shop.world.lab().outside(), question).kind != lab::Answer::Kind::Answered) {
      REQUIRE(SteadyClock::now() - begin < 5s);
    }
    const auto took = std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin);
    worst = std::max(worst, took);
    figures += " " + std::to_string(took.count());
  }
  std::printf(
      "after nft flush ruleset a connection was answered within, in ms:%s (at most %lld)\n",
      figures.c_str(),
      static_cast<long long>(worst.count()));
  CHECK(shop.world.settle().at("drift").at("IPv4").at("table").get<int>() >= 20);
  Load load(shop.world, 500ms);
  CHECK(load.report().unanswered() == 0);
}

}  // namespace
}  // namespace shunt::test
