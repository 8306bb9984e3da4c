#include "packet/agent_command.h"

#include <catch2/catch_test_macros.hpp>

using namespace shunt::conformance::packet;  // NOLINT(google-build-using-namespace): a test file

namespace {

using Words = std::vector<std::string>;

const AgentFiles kFiles{"/t/config.json", "/t/kubeconfig", "/t/status"};

}  // namespace

TEST_CASE("a command is split at blanks outside quotes") {
  CHECK(
      split_command(" agent  -a 'b c'\t\"d 'e\" x'y z'") ==
      Words{"agent", "-a", "b c", "d 'e", "xy z"});
  CHECK(split_command("agent ''") == Words{"agent", ""});
  CHECK(split_command("  ").empty());
}

TEST_CASE("our agent gets a configuration and a status socket") {
  AgentCommand command;
  command.words = {"kube-shunt"};
  CHECK(
      agent_arguments(command, kFiles, "edge-a") ==
      Words{"kube-shunt", "--config", "/t/config.json", "--status-socket", "/t/status"});
}

TEST_CASE("another agent gets a configuration, where its command says") {
  AgentCommand command;
  command.status_socket = false;
  command.words = {"kube-proxy", "--v=4"};
  CHECK(
      agent_arguments(command, kFiles, "edge-a") ==
      Words{"kube-proxy", "--v=4", "--config", "/t/config.json"});
  command.words = {"agent", "-c={config}", "-k", "{kubeconfig}", "-n", "{node}"};
  CHECK(
      agent_arguments(command, kFiles, "edge-a") ==
      Words{"agent", "-c=/t/config.json", "-k", "/t/kubeconfig", "-n", "edge-a"});
}

TEST_CASE("the configuration says everything that a case sets") {
  Settings settings;
  settings.node_name = "edge-a";
  settings.masquerade_all = true;
  settings.detect_local_mode = "ClusterCIDR";
  settings.detect_local_cidrs = {"10.64.0.0/14", "fd64::/48"};
  nlohmann::json config = agent_configuration(settings, "ipvs", "/t/kubeconfig");
  CHECK(config["mode"] == "ipvs");
  CHECK(config["clientConnection"]["kubeconfig"] == "/t/kubeconfig");
  CHECK(config["hostnameOverride"] == "edge-a");
  CHECK(config["clusterCIDR"] == "10.64.0.0/14,fd64::/48");
  for (const char* const section : {"nftables", "iptables"}) {
    CHECK(config[section]["masqueradeAll"] == true);
  }
  // An empty list in the bank is every address; in the configuration it would be the primary ones.
  CHECK(config["nodePortAddresses"] == nlohmann::json{"0.0.0.0/0", "::/0"});
  settings.node_port_addresses = {"primary"};
  CHECK(
      agent_configuration(settings, "ipvs", "")["nodePortAddresses"] == nlohmann::json{"primary"});
}

TEST_CASE("an agent in mode ipvs is told its scheduler, and to leave loopback alone") {
  Settings settings;
  settings.detect_local_mode = "none";
  settings.localhost_node_ports = true;
  settings.ipvs_scheduler = "wlc";
  settings.ipvs_exclude_cidrs = {"172.29.3.0/24"};
  const nlohmann::json config = agent_configuration(settings, "ipvs", "");
  CHECK(config["ipvs"]["scheduler"] == "wlc");
  CHECK(config["ipvs"]["excludeCIDRs"] == nlohmann::json{"172.29.3.0/24"});
  CHECK(config["iptables"]["localhostNodePorts"] == false);
  CHECK(agent_configuration(settings, "iptables", "")["iptables"]["localhostNodePorts"] == true);
}
