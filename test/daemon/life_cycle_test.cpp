// Start, reload, upgrade and end, and what the daemon shows meanwhile.

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "daemon/load.h"
#include "daemon/needs_root.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

void write(const World& world, const std::string& text) {
  const std::string path = world.directory() + "/config.yaml";
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
}

std::string config(const std::string& more) {
  return "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
         "mode: nftables\nconntrack: {maxPerCore: 0}\n" +
         more;
}

World::Options configured() {
  World::Options options;
  options.start_daemon = false;
  options.config_file = "config.yaml";
  return options;
}

TEST_CASE("a configuration that is wrong is refused by name, and the one in force stays") {
  SHUNT_NEEDS_ROOT();
  Shop shop(configured());
  write(shop.world, config(""));
  shop.world.start_daemon();
  shop.world.settle();
  const auto commits = shop.world.settle().at("commits");
  write(shop.world, config("clusterCIDR: nowhere\noomScoreAdj: 5000\n"));
  shop.world.await_log("the configuration is not taken");
  CHECK(shop.world.daemon_log().find("clusterCIDR") != std::string::npos);
  CHECK(shop.world.daemon_log().find("oomScoreAdj") != std::string::npos);
  CHECK(shop.world.settle().at("commits") == commits);
  CHECK(
      shop.world.get(10249, "/metrics")
          .body.find("kubeshunt_config_reloads_total{result=\"failure\"} 1") != std::string::npos);

  // SIGHUP asks again, and again it is wrong; then it is mended.
  shop.world.signal_daemon(SIGHUP);
  shop.world.await_log("the configuration is not taken", 2);
  write(shop.world, config("clusterCIDR: 10.64.0.0/14\n"));
  shop.world.await_log("configuration read again");
  shop.world.settle();
  CHECK(
      shop.world.on_node("nft list set ip kube-shunt pod-cidrs").find("10.64.0.0/14") !=
      std::string::npos);
}

TEST_CASE("a log level alone changes without building anything anew") {
  SHUNT_NEEDS_ROOT();
  Shop shop(configured());
  write(shop.world, config(""));
  shop.world.start_daemon();
  const auto commits = shop.world.settle().at("commits");
  REQUIRE(commits > 0);
  write(shop.world, config("logging: {verbosity: 4}\n"));
  shop.world.await_log("configuration read again");
  CHECK(shop.world.settle().at("commits") == commits);  // a new generation begins at none
  shop.world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  shop.world.settle();
  CHECK(shop.world.daemon_log().find("level=debug") != std::string::npos);
}

// Both files as kubeadm writes them, where its DaemonSet mounts them, with the service account that
// a pod has; in a mount namespace of the daemon's own.
TEST_CASE("kubeadm's configuration starts the daemon unchanged") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  options.lab.node_addresses.push_back(net::parse_ip("192.0.2.10").value());
  options.server_flags = {"--listen", "192.0.2.10:6443"};
  options.daemon_flags = {"--config=/var/lib/kube-proxy/config.conf"};
  Shop shop(options);
  const std::string pki = shop.world.directory() + "/pki";
  const std::string files = std::string(SHUNT_SOURCE_DIR) + "/pkg/config/testdata/kubeadm";
  shop.world.set_daemon_prefix(
      {"unshare",
       "-m",
       "sh",
       "-ec",
       "mount -t tmpfs none /var/lib; mkdir /var/lib/kube-proxy; cp " + files +
           "/*.conf /var/lib/kube-proxy; mount -t tmpfs none /run; "
           "mkdir -p /run/secrets/kubernetes.io/serviceaccount; cp " +
           pki + "/token " + pki + "/ca.crt /run/secrets/kubernetes.io/serviceaccount; exec \"$@\"",
       "sh"});
  shop.world.start_daemon();
  shop.world.settle();
  const std::string log = shop.world.daemon_log();
  INFO(log);
  CHECK(log.find("source=https://192.0.2.10:6443") != std::string::npos);
  CHECK(log.find("level=error") == std::string::npos);
  Load load(shop.world, 300ms);
  CHECK(load.report().unanswered() == 0);
  CHECK(shop.world.get(10249, "/proxyMode").body == "nftables");
}

TEST_CASE("the daemon says how it is") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  CHECK(shop.world.get(10256, "/healthz").status == 200);
  CHECK(shop.world.get(10256, "/livez").status == 200);
  const auto ready = shop.world.get(10256, "/readyz");
  INFO(ready.body);
  CHECK(ready.status == 200);

  Load load(shop.world, 500ms);
  const auto report = load.report();
  REQUIRE(report.unanswered() == 0);
  std::this_thread::sleep_for(1100ms);  // until a look is taken again
  const std::string metrics = shop.world.get(10249, "/metrics").body;
  INFO(metrics);
  CHECK(
      metrics.find("kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family=\"IPv4\"}") !=
      std::string::npos);
  CHECK(metrics.find("kubeshunt_service_new_connections_total{") != std::string::npos);
  CHECK(metrics.find("service=\"web\"") != std::string::npos);
  CHECK(metrics.find("rest_client_requests_total{") != std::string::npos);
  CHECK(shop.world.get(10249, "/healthz").body == "ok");
  CHECK(shop.world.get(10249, "/configz").status == 200);
  CHECK(shop.world.get(10249, "/statusz").status == 200);
  CHECK(shop.world.get(10249, "/debug/flags/v").status == 404);
}

TEST_CASE("readyz sees that somebody emptied the kernel and that it was mended") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  shop.world.on_node("nft flush ruleset");
  shop.world.await_log("somebody changed our part of the kernel");
  shop.world.settle();
  CHECK(shop.world.get(10256, "/readyz").status == 200);
  const std::string metrics = shop.world.get(10249, "/metrics").body;
  CHECK(metrics.find("kubeshunt_drift_repairs_total{") != std::string::npos);
}

TEST_CASE("the daemon lives on CAP_NET_ADMIN alone") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.daemon_prefix = {
      "setpriv",
      "--bounding-set=-all,+net_admin",
      "--inh-caps=-all,+net_admin",
      "--no-new-privs",
      "--"};
  Shop shop(options);
  const std::string pid = std::to_string(shop.world.daemon_pid());
  CHECK(
      shop.world.on_node("grep CapEff /proc/" + pid + "/status") == "CapEff:\t0000000000001000\n");
  Load load(shop.world, 300ms);
  CHECK(load.report().unanswered() == 0);
  shop.world.on_node("nft flush ruleset");
  shop.world.await_log("somebody changed our part of the kernel");
  shop.world.settle();
  CHECK(shop.world.get(10256, "/readyz").status == 200);
}

TEST_CASE("--cleanup leaves nothing of ours and everything of others") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  shop.world.on_node("nft add table ip foreign");
  CHECK(shop.world.stop_daemon() == 0);
  shop.world.on_node(shop.world.program("kube-shunt") + " --cleanup --proxy-mode nftables");
  CHECK(shop.world.on_node("nft list ruleset") == "table ip foreign {\n}\n");
}

// A balancer Service with policy Local and a health port.
json balancer(int health_port) {
  json out = service("gate", {"10.112.0.20"});
  out["spec"]["type"] = "LoadBalancer";
  out["spec"]["externalTrafficPolicy"] = "Local";
  out["spec"]["healthCheckNodePort"] = health_port;
  return out;
}

int ask_health(const World& world, const std::string& at) {
  try {
    return lab::plain_http(world.lab().node(), net::parse_socket_address(at).value(), "GET", "/")
        .status;
  } catch (const std::exception&) {
    return 0;  // nobody listens
  }
}

TEST_CASE("health ports of Services follow endpoints, reloads and the host's addresses") {
  SHUNT_NEEDS_ROOT();
  Shop shop(configured());
  const World& world = shop.world;
  write(world, config("nodePortAddresses: [10.80.0.0/16]\n"));
  world.apply({balancer(30500), slice("gate", "IPv4", {"10.64.0.1"})});
  shop.world.start_daemon();
  world.settle();
  CHECK(ask_health(world, "10.80.0.10:30500") == 200);
  CHECK(ask_health(world, "127.0.0.1:30500") == 0);

  world.apply({slice("gate", "IPv4", {})});
  world.settle();
  CHECK(ask_health(world, "10.80.0.10:30500") == 503);

  world.lab().add_node_address(net::parse_ip("10.80.7.7").value());
  for (int i = 0; i < 500 && ask_health(world, "10.80.7.7:30500") == 0; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  CHECK(ask_health(world, "10.80.7.7:30500") == 503);

  write(world, config("nodePortAddresses: [10.80.0.0/16]\nnftables: {masqueradeAll: true}\n"));
  for (int i = 0; i < 100; ++i) {  // never closed while the inner parts are built anew
    REQUIRE(ask_health(world, "10.80.0.10:30500") == 503);
    std::this_thread::sleep_for(5ms);
  }
  world.await_log("configuration read again");
  world.remove("Service", "gate");
  world.settle();
  CHECK(ask_health(world, "10.80.0.10:30500") == 0);
}

TEST_CASE("operators hear of the start and of oddities as Events") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  json odd = service("odd", {"10.112.0.30"});
  odd["spec"]["ports"][0]["protocol"] = "GOPHER";
  shop.world.apply({odd}, /*raw=*/true);
  json late = service("late", {"10.112.0.10"});  // that of "web"
  late["metadata"]["creationTimestamp"] = "2040-01-01T00:00:00Z";
  shop.world.apply({late}, /*raw=*/true);
  shop.world.settle();
  const auto reasons = [&] {
    std::multiset<std::string> out;
    const json list = json::parse(shop.world.admin("GET", "/apis/events.k8s.io/v1/events"));
    for (const json& event : list.at("items")) {
      out.insert(
          event.at("reason").get<std::string>() + " " +
          event.at("regarding").at("name").get<std::string>());
    }
    return out;
  };
  for (int i = 0; i < 500 && reasons().size() < 3; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  INFO(shop.world.daemon_log());
  CHECK(
      reasons() ==
      std::multiset<std::string>{"AddressConflict late", "SetAside odd", "Starting edge-a"});
}

TEST_CASE("a node that boots while the API server is away serves what it knew last") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  const std::string snapshot = "/tmp/kube-shunt-snapshot-" + std::to_string(::getpid());
  options.daemon_flags = {"--snapshot", snapshot};
  Shop shop(options);
  World& world = shop.world;
  world.start_daemon();
  world.settle();
  for (int i = 0; i < 2000 && !std::filesystem::exists(snapshot); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  REQUIRE(std::filesystem::exists(snapshot));
  CHECK(
      std::filesystem::status(snapshot).permissions() ==
      (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));

  world.kill_daemon();
  world.kill_server();
  world.on_node("nft flush ruleset");  // a boot
  world.start_daemon();
  world.await_log("serving what was known last");
  world.await_log("first sync done", 2);
  {
    Load load(world, 300ms);
    CHECK(load.report().unanswered() == 0);
  }

  world.start_server();
  world.apply({slice("web", "IPv4", {"10.64.0.3"})});
  world.settle(90s);
  Load load(world, 300ms);
  const auto report = load.report();
  CHECK(report.unanswered() == 0);
  CHECK(report.answered.size() == 1);
  CHECK(report.answered.contains("three"));
  std::filesystem::remove(snapshot);
}

TEST_CASE("standalone: Services from files, without an API server") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  const std::string directory = "/tmp/kube-shunt-manifests-" + std::to_string(::getpid());
  std::filesystem::create_directory(directory);
  options.daemon_flags = {"--manifests", directory};
  Shop shop(options);
  World& world = shop.world;
  world.kill_server();
  const auto put = [&](const std::vector<const char*>& endpoints) {
    std::ofstream file(directory + "/.web");
    file << "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
            "spec: {clusterIP: 10.112.0.10, ports: [{port: 80}]}\n---\n"
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n"
            "metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}\n"
            "addressType: IPv4\nports: [{port: 8080}]\nendpoints:\n";
    for (const char* endpoint : endpoints) {
      file << "- {addresses: [" << endpoint << "]}\n";
    }
    file.close();
    std::filesystem::rename(directory + "/.web", directory + "/web.yaml");
  };
  put({"10.64.0.1", "10.64.0.2"});
  world.start_daemon();
  world.await_log("first sync done");
  {
    Load load(world, 300ms);
    const auto report = load.report();
    CHECK(report.unanswered() == 0);
    CHECK(report.answered.size() == 2);
  }
  put({"10.64.0.3"});
  for (int i = 0; i < 500; ++i) {
    if (world.on_node("nft list map ip kube-shunt endpoints").find("10.64.0.3 . 8080") !=
        std::string::npos) {
      break;
    }
    std::this_thread::sleep_for(10ms);
  }
  Load load(world, 300ms);
  const auto report = load.report();
  CHECK(report.unanswered() == 0);
  CHECK(report.answered.contains("three"));
  CHECK(report.answered.size() == 1);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace shunt::test
