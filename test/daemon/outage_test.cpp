// An API server that is away, that throws clients out, or whose credentials change: the daemon's
// state comes right by itself, the metrics tell the story, and no core is kept busy meanwhile.
//
// SHUNT_OUTAGE_SECONDS says how long the server is away; 15 unless told.

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "daemon/load.h"
#include "daemon/needs_root.h"
#include "daemon/processor_time.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using std::chrono::seconds;

seconds outage() {
  const char* told = std::getenv("SHUNT_OUTAGE_SECONDS");
  return seconds(told != nullptr ? std::atoi(told) : 15);
}

double metric(const World& world, const std::string& line_start) {
  const std::string text = world.get(10249, "/metrics").body;
  const std::size_t at = text.find("\n" + line_start);
  if (at == std::string::npos) {
    throw std::runtime_error("no metric " + line_start);
  }
  return std::stod(text.substr(text.find(' ', at) + 1));
}

// Watches end, and nobody can connect any more.
void close_server(const World& world) {
  world.set_faults(
      json::array({{{"kind", "refuse"}}, {{"kind", "cut"}, {"live", true}, {"bytes", 0}}}));
}

void put(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
}

std::string endpoints_in_kernel(const World& world) {
  return world.on_node("nft list map ip kube-shunt endpoints");
}

TEST_CASE("outage: an API server that is away while things change") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  options.config_file = "config.yaml";
  Shop shop(options);
  const World& world = shop.world;
  put(world.directory() + "/config.yaml",
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
      "mode: nftables\nconntrack: {maxPerCore: 0}\nkubeShunt: {readyzMaxContactAge: 5s}\n");
  shop.world.start_daemon();
  world.settle();
  CHECK(world.get(10256, "/readyz").status == 200);

  close_server(world);
  const double before = processor_time(world.daemon_pid());
  std::this_thread::sleep_for(outage() / 2);
  world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  world.apply({service("late", {"10.112.0.11"}), slice("late", "IPv4", {"10.64.0.3"})});
  {
    Load load(world, 500ms);
    CHECK(load.report().unanswered() == 0);  // as it was
  }
  std::this_thread::sleep_for(outage() / 2);
  const double busy =
      (processor_time(world.daemon_pid()) - before) / static_cast<double>(outage().count());
  std::printf(
      "API server away for %lld s: %.3f %% of a core\n",
      static_cast<long long>(outage().count()),
      busy * 100);
  CHECK(busy < 0.05);
  const auto ready = world.get(10256, "/readyz");
  CHECK(ready.status == 503);
  CHECK(ready.body.find("services") != std::string::npos);
  CHECK(world.get(10256, "/healthz").status == 200);  // nothing waits: the node still serves
  CHECK(
      metric(world, "kubeshunt_api_contact_age_seconds{resource=\"services\"}") >
      static_cast<double>(outage().count()) / 2);

  world.clear_faults();
  world.settle(90s);
  CHECK(endpoints_in_kernel(world).find("10.64.0.1 . 8080") == std::string::npos);
  CHECK(endpoints_in_kernel(world).find("10.64.0.3 . 8080") != std::string::npos);
  CHECK(world.get(10256, "/readyz").status == 200);
  CHECK(metric(world, "kubeshunt_api_contact_age_seconds{resource=\"services\"}") < 30);
}

TEST_CASE("outage: a storm of 410s ends in the right state, and is no busy loop") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  Shop shop(options);
  const World& world = shop.world;
  const double before = processor_time(world.daemon_pid());
  world.set_faults(json::array({{{"kind", "error-event"}, {"code", 410}}}));
  const auto storm = std::min<seconds>(outage(), 20s);
  std::this_thread::sleep_for(storm);
  const double busy =
      (processor_time(world.daemon_pid()) - before) / static_cast<double>(storm.count());
  const double watches = metric(world, "kubeshunt_api_watches_total{resource=\"services\"}");
  std::printf(
      "410 to every watch for %lld s: %.3f %% of a core, %.0f watches of Services\n",
      static_cast<long long>(storm.count()),
      busy * 100,
      watches);
  CHECK(busy < 0.2);
  CHECK(watches < 20.0 * static_cast<double>(storm.count()));
  world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  world.clear_faults();
  world.settle(90s);
  CHECK(endpoints_in_kernel(world).find("10.64.0.1 . 8080") == std::string::npos);
}

std::string kubeconfig(const World& world, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443', "
         "certificate-authority: " +
         world.directory() + "/pki/ca.crt}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

TEST_CASE("outage: a token that is rotated is read again") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  options.kubeconfig = "kubeconfig-rotated";
  const std::string tokens = "/tmp/kube-shunt-tokens-" + std::to_string(::getpid());
  put(tokens, "sesame-one\n");
  options.server_flags = {"--token-file", tokens};
  Shop shop(options);
  const World& world = shop.world;
  put(world.directory() + "/token", "sesame-one");
  put(world.directory() + "/kubeconfig-rotated",
      kubeconfig(world, "tokenFile: " + world.directory() + "/token"));
  shop.world.start_daemon();
  world.settle();

  put(tokens, "sesame-two\n");
  put(world.directory() + "/token", "sesame-two");
  world.set_faults(json::array(
      {{{"kind", "cut"}, {"live", true}, {"bytes", 0}, {"match", {{"remaining", 4}}}}}));
  std::this_thread::sleep_for(500ms);
  world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  world.settle(90s);
  CHECK(endpoints_in_kernel(world).find("10.64.0.1 . 8080") == std::string::npos);
  CHECK(world.daemon_log().find("sesame") == std::string::npos);  // no secret in a log
  CHECK(world.get(10249, "/metrics").body.find("sesame") == std::string::npos);
  std::filesystem::remove(tokens);
}

TEST_CASE("outage: a client certificate that is replaced is used without a restart") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  options.kubeconfig = "kubeconfig-rotated";
  Shop shop(options);
  const World& world = shop.world;
  const auto certificate = [&](const std::string& name) {
    world.on_node(
        "cd " + world.directory() +
        " && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.new "
        "-out request -subj /CN=" +
        name +
        " && openssl x509 -req -in request -CA pki/ca.crt -CAkey pki/ca.key -CAcreateserial "
        "-days 1 -out cert.new && mv key.new rotated.key && mv cert.new rotated.crt");
  };
  certificate("system:nobody");
  put(world.directory() + "/kubeconfig-rotated",
      kubeconfig(
          world,
          "client-certificate: " + world.directory() +
              "/rotated.crt, client-key: " + world.directory() + "/rotated.key"));
  shop.world.start_daemon();
  std::this_thread::sleep_for(1500ms);
  CHECK(world.on_node("nft list ruleset").empty());  // nobody may list anything
  certificate("system:kube-proxy");
  world.settle(90s);
  Load load(world, 300ms);
  CHECK(load.report().unanswered() == 0);
}

}  // namespace
}  // namespace shunt::test
