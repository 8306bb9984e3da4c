#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "config/options.h"
#include "config/testing.h"

// The configuration in effect as text, and what a reload changes.
namespace shunt::config {
namespace {

using testing::error_of;
using testing::has;
using testing::load_fields;
using Application = FieldChange::Application;

constexpr char kMany[] = R"(featureGates: {AllowServiceExternalIPs: false, SomeNewGate: true}
clientConnection: {kubeconfig: /k, qps: 2.5}
mode: nftables
clusterCIDR: 10.64.0.0/14,fd64::/48
nftables: {masqueradeBit: 3, syncPeriod: 1m30s}
ipvs: {excludeCIDRs: [10.0.0.0/8]}
conntrack: {maxPerCore: 0, tcpCloseWaitTimeout: 1500ms}
logging: {verbosity: 2, vmodule: [{filePattern: "a*", verbosity: 3}]}
portRange: "strange \" \\ \u00e9 value"
kubeShunt: {statusSocket: /s, localhostNodePorts: true}
)";

TEST_CASE("what is in effect can be loaded again and is the same") {
  for (const char* fields :
       {"",
        kMany,
        "nodePortAddresses: [10.0.0.0/8, 127.0.0.0/8]\n",
        "mode: ipvs\nipvs: {scheduler: mh, excludeCIDRs: [10.0.0.0/8], udpTimeout: 1m}\n",
        "bindAddress: \"fd80::1\"\n"}) {
    const auto first = load_fields(fields);
    REQUIRE(first);
    const auto again = load_text({{"--hostname-override=n"}}, first->effective_yaml);
    CHECK(error_of(again).empty());
    REQUIRE(again);
    CHECK(differences(*first, *again).empty());
    CHECK(again->effective_yaml == first->effective_yaml);
    for (const std::string& warning : again->warnings) {
      CHECK_FALSE(has(warning, "unknown field"));
    }
  }
}

TEST_CASE("/configz answers kube-proxy's object with its names and types, ours beside it") {
  const auto got = load_fields(kMany);
  REQUIRE(got);
  const auto json = nlohmann::json::parse(got->configz);
  const auto& config = json.at("kubeproxy.config.k8s.io");
  CHECK(config.at("kind") == "KubeProxyConfiguration");
  CHECK(config.at("apiVersion") == "kubeproxy.config.k8s.io/v1alpha1");
  CHECK(config.at("mode") == "nftables");
  CHECK(config.at("configSyncPeriod") == "15m0s");
  CHECK(config.at("clientConnection").at("qps") == 2.5);
  CHECK(config.at("clientConnection").at("burst") == 10);
  CHECK(config.at("conntrack").at("maxPerCore") == 0);
  CHECK(config.at("conntrack").at("tcpEstablishedTimeout") == "24h0m0s");
  CHECK(config.at("conntrack").at("tcpCloseWaitTimeout") == "1.5s");
  CHECK(config.at("nodePortAddresses") == nlohmann::json::array({"primary"}));
  CHECK(config.at("featureGates").at("AllowServiceExternalIPs") == false);
  CHECK(config.at("logging").at("vmodule")[0].at("verbosity") == 3);
  CHECK(config.at("portRange") == "strange \" \\ \u00e9 value");
  CHECK_FALSE(config.contains("kubeShunt"));
  CHECK_FALSE(config.contains("--config"));
  CHECK(json.at("kubeShunt").at("statusSocket") == "/s");
  CHECK(json.at("kubeShunt").at("localhostNodePorts") == true);
}

TEST_CASE("the same settings differ in nothing") {
  CHECK(differences(*load_fields(kMany), *load_fields(kMany)).empty());
  CHECK(differences(*load_fields(""), *load_fields("conntrack: {min: 131072}\n")).empty());
}

TEST_CASE("a change is named with both values and how it can be applied") {
  const struct {
    const char* before;
    const char* after;
    const char* field;
    const char* was;
    const char* is;
    Application application;
  } cases[] = {
      {"", "logging: {verbosity: 2}\n", "logging.verbosity", "0", "2", Application::AtOnce},
      {"",
       "logging: {format: json}\n",
       "logging.format",
       "\"text\"",
       "\"json\"",
       Application::AtOnce},
      {"",
       "clusterCIDR: 10.0.0.0/8\n",
       "clusterCIDR",
       "\"\"",
       "\"10.0.0.0/8\"",
       Application::ByRebuilding},
      {"conntrack: {udpTimeout: 1s}\n",
       "",
       "conntrack.udpTimeout",
       "\"1s\"",
       "\"0s\"",
       Application::ByRebuilding},
      {"", "clientConnection: {qps: 7}\n", "clientConnection.qps", "5", "7", Application::Nothing},
      {"mode: ipvs\n",
       "mode: ipvs\nipvs: {scheduler: lc}\n",
       "ipvs.scheduler",
       "\"rr\"",
       "\"lc\"",
       Application::ByRebuilding},
      {"",
       "kubeShunt: {snapshot: /s}\n",
       "kubeShunt.snapshot",
       "\"\"",
       "\"/s\"",
       Application::ByRebuilding},
  };
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.field) {
      const auto changes = differences(*load_fields(c.before), *load_fields(c.after));
      REQUIRE(changes.size() == 1);
      CHECK(changes[0].field == c.field);
      CHECK(changes[0].before == c.was);
      CHECK(changes[0].after == c.is);
      CHECK(changes[0].application == c.application);
    }
  }
}

TEST_CASE("a host that is called otherwise now is a change") {
  const auto before = load_fields("");
  REQUIRE(before);
  Options after = *before;
  after.node_name = "m";
  const auto changes = differences(*before, after);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].application == Application::ByRebuilding);
}

TEST_CASE("the same command line is evaluated again, with what the file says now") {
  const testing::File file(testing::with_head("clusterCIDR: 10.0.0.0/8\n"));
  const CommandLine line{{"--config", file.path, "--hostname-override=n"}};
  const auto before = load(line);
  std::ofstream(file.path) << testing::with_head("clusterCIDR: 11.0.0.0/8\n");
  const auto after = load(line);
  REQUIRE(before);
  REQUIRE(after);
  CHECK(differences(*before, *after).at(0).field == "clusterCIDR");
  std::ofstream(file.path) << "half a fi";
  CHECK_FALSE(load(line));
}

}  // namespace
}  // namespace shunt::config
