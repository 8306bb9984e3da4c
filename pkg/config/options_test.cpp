#include "config/options.h"

#include <catch2/catch_test_macros.hpp>

#include "config/testing.h"

// The command line as a whole: who wins, and what it asks for besides running.
namespace shunt::config {
namespace {

using testing::error_of;
using testing::File;
using testing::has;
using testing::parse;
using testing::warned;
using testing::with_head;
using Kind = NodePortAddresses::Kind;

TEST_CASE("without a word about them, settings are kube-proxy's defaults") {
  const auto got = parse({"--hostname-override", "n"});
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(o.warnings.empty());
  CHECK(o.mode == Mode::Auto);
  CHECK(o.node_port_addresses.kind == Kind::All);
  CHECK(o.localhost_node_ports);
  CHECK(o.bind_address == net::IpAddress{});
  CHECK(o.conntrack.max_per_core == 32'768);
  CHECK(o.conntrack.min == 131'072);
  CHECK(o.conntrack.tcp_established_timeout == std::chrono::hours(24));
  CHECK(o.conntrack.tcp_close_wait_timeout == std::chrono::hours(1));
  CHECK_FALSE(o.conntrack.tcp_be_liberal);
  CHECK(o.conntrack.udp_timeout.count() == 0);
  CHECK(net::to_string(o.healthz.value()) == "0.0.0.0:10256");
  CHECK(net::to_string(o.metrics.value()) == "127.0.0.1:10249");
  CHECK(o.sync_period == Millis{30'000});
  CHECK(o.min_sync_period.count() == 0);  // ours: kube-proxy's is a second
  CHECK(o.allow_external_ips);
  CHECK(o.oom_score_adj == -999);
  CHECK(o.watch_stall_timeout == Millis{120'000});
  CHECK(o.service_metrics_limit == 1'000);
}

TEST_CASE("flags of kube-proxy are understood") {
  const auto got = parse(
      {"--kubeconfig",
       "/k",
       "--hostname-override",
       " Node1 ",
       "--cluster-cidr",
       "10.244.0.0/16,fd00::/48",
       "--masquerade-all",
       "--v=2",
       "--logging-format=json",
       "--proxy-mode=nftables",
       "--nodeport-addresses",
       "10.80.0.7/24,fd80::/64",
       "--bind-address",
       "10.80.0.10",
       "--conntrack-max-per-core=0",
       "--conntrack-tcp-timeout-close-wait=90s",
       "--conntrack-tcp-be-liberal",
       "--iptables-sync-period=9s",
       "--iptables-min-sync-period=1s",
       "--profiling",
       "--bind-address-hard-fail",
       "--feature-gates=AllowServiceExternalIPs=false"});
  CHECK(error_of(got).empty());
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(o.warnings.empty());
  CHECK(o.kubeconfig == "/k");
  CHECK(o.node_name == "node1");
  CHECK(o.cluster_cidrs.size() == 2);
  CHECK(o.masquerade_all);
  CHECK(o.verbosity == 2);
  CHECK(o.log_format == log::Format::Json);
  CHECK(
      o.node_port_addresses.ranges ==
      std::vector{*net::parse_cidr("10.80.0.0/24"), *net::parse_cidr("fd80::/64")});
  CHECK(o.bind_address == *net::parse_ip("10.80.0.10"));
  CHECK(o.conntrack.max_per_core == 0);
  CHECK(o.conntrack.tcp_close_wait_timeout.count() == 90);
  CHECK(o.conntrack.tcp_be_liberal);
  CHECK(o.sync_period == Millis{9'000});
  CHECK(o.min_sync_period == Millis{1'000});
  CHECK(o.enable_profiling);
  CHECK(o.bind_address_hard_fail);
  CHECK_FALSE(o.allow_external_ips);
}

TEST_CASE("flags of kube-proxy's IPVS mode are understood, and said to be idle in other modes") {
  const std::vector<std::string> flags{
      "--hostname-override=n",
      "--ipvs-scheduler=sed",
      "--ipvs-exclude-cidrs=10.9.0.0/16,fd09::/64",
      "--ipvs-strict-arp",
      "--ipvs-tcp-timeout=10m",
      "--ipvs-tcpfin-timeout=20s",
      "--ipvs-udp-timeout=30s",
      "--ipvs-sync-period=40s",
      "--ipvs-min-sync-period=5s",
      "--iptables-masquerade-bit=9",
      "--iptables-sync-period=1s"};
  std::vector<std::string> in_ipvs = flags;
  in_ipvs.emplace_back("--proxy-mode=ipvs");
  const auto got = parse(in_ipvs);
  CHECK(error_of(got).empty());
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(o.warnings.empty());
  CHECK(o.ipvs.scheduler == "sed");
  CHECK(o.ipvs.exclude_cidrs.size() == 2);
  CHECK(o.ipvs.strict_arp);
  CHECK(o.ipvs.tcp_timeout.count() == 600);
  CHECK(o.ipvs.tcp_fin_timeout.count() == 20);
  CHECK(o.ipvs.udp_timeout.count() == 30);
  CHECK(o.sync_period == Millis{40'000});
  CHECK(o.min_sync_period == Millis{5'000});
  CHECK(o.masquerade_bit == 9);

  const auto idle = parse(flags);
  REQUIRE(idle);
  CHECK(idle->options.sync_period == Millis{1'000});
  CHECK(idle->options.ipvs.exclude_cidrs.size() == 2);
  CHECK(warned(idle->options, "ipvs.scheduler: has no effect"));
  CHECK(idle->options.warnings.size() == 7);  // all of IPVS but the excluded ranges
}

TEST_CASE("an empty address is as good as none") {
  const auto got = parse(
      {"--hostname-override",
       "n",
       "--bind-address=",
       "--healthz-bind-address",
       "",
       "--metrics-bind-address="});
  REQUIRE(got);
  CHECK(got->options.bind_address == net::IpAddress{});
  CHECK(got->options.healthz);
  CHECK(got->options.metrics);
}

TEST_CASE("the ports of old: 0 turns health off, others complete an address without a port") {
  CHECK_FALSE(parse({"--healthz-port=0"})->options.healthz);
  CHECK(has(error_of(parse({"--metrics-port=0"})), "metricsBindAddress"));
  CHECK(net::to_string(parse({"--healthz-port=7"})->options.healthz.value()) == "0.0.0.0:10256");
  CHECK(
      net::to_string(parse({"--healthz-bind-address=10.0.0.1", "--healthz-port=7"})
                         ->options.healthz.value()) == "10.0.0.1:7");
  const File file(with_head(""));
  CHECK(parse({"--config", file.path, "--healthz-port=0"})->options.healthz);
}

TEST_CASE("a zero in a flag is meant, and judged") {
  CHECK(has(error_of(parse({"--iptables-sync-period=0"})), "iptables.syncPeriod"));
  CHECK(has(error_of(parse({"--config-sync-period=0"})), "configSyncPeriod"));
  CHECK(has(error_of(parse({"--watch-stall-timeout=0s"})), "kubeShunt.watchStallTimeout"));
  CHECK(has(error_of(parse({"--hostname-override", "  "})), "hostnameOverride"));
}

TEST_CASE("what the file says beats the flags, but for those that count always") {
  const File file(with_head(R"(clientConnection: {kubeconfig: /from/file, contentType: a/b}
hostnameOverride: from-file
mode: nftables
clusterCIDR: 10.64.0.0/14
logging: {verbosity: 3, vmodule: [{filePattern: f, verbosity: 1}]}
kubeShunt: {statusSocket: /file.sock, serviceMetricsLimit: 5, snapshot: /file.snap}
)"));
  const auto got = parse(
      {"--config",
       file.path,
       "--cluster-cidr",
       "1.0.0.0/8",
       "--hostname-override",
       "flag",
       "--kubeconfig=/flag",
       "--masquerade-all",
       "--master=https://m",
       "--v=1",
       "--vmodule=g=2",
       "--status-socket=/flag.sock",
       "--service-metrics-limit=0",
       "--watch-stall-timeout=7s",
       "--manifests=/m"});
  CHECK(error_of(got).empty());
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(o.config_file == file.path);
  CHECK(has(o.config_text, "from-file"));
  CHECK(o.kubeconfig == "/from/file");
  CHECK(o.content_type == "a/b");
  CHECK(net::to_string(o.cluster_cidrs.at(0)) == "10.64.0.0/14");
  CHECK_FALSE(o.masquerade_all);
  CHECK(o.node_name == "flag");
  CHECK(o.master == "https://m");
  CHECK(o.verbosity == 1);
  CHECK(o.vmodule == std::vector<VerbosityOfFiles>{{"g", 2}, {"f", 1}});
  CHECK(o.status_socket == "/flag.sock");
  CHECK(o.service_metrics_limit == 0);
  CHECK(o.watch_stall_timeout == Millis{7'000});
  CHECK(o.manifests == "/m");
  CHECK(o.snapshot == "/file.snap");
  for (const char* flag :
       {"--cluster-cidr: ignored",
        "--kubeconfig: ignored",
        "--masquerade-all: ignored",
        "logging.vmodule"}) {
    CHECK(warned(o, flag));
  }
  CHECK(o.warnings.size() == 4);
}

TEST_CASE("--kubeconfig counts beside a file that names none") {
  for (const char* fields : {"", "clientConnection: {kubeconfig: \"\"}\n"}) {
    const File file(with_head(fields));
    const auto got = parse({"--config", file.path, "--kubeconfig=/flag"});
    REQUIRE(got);
    CHECK(got->options.kubeconfig == "/flag");
    CHECK(got->options.warnings.empty());
  }
}

TEST_CASE("a file that is not there is an error with its name") {
  CHECK(has(error_of(parse({"--config", "/no/such/file"})), "/no/such/file"));
  CHECK_FALSE(parse({"--config", "/tmp"}));
  const File file("a: [");
  CHECK(has(error_of(parse({"--config", file.path})), file.path));
}

TEST_CASE("--version and --help print and leave, whatever else is said") {
  const auto version = parse({"--version", "--config=/no/such/file"});
  REQUIRE(version);
  CHECK(version->exit_code == 0);
  CHECK(has(version->text, "kube-shunt "));
  const auto help = parse({"-h"});
  REQUIRE(help);
  CHECK(help->exit_code == 0);
  CHECK(has(help->text, "--check-config"));
}

TEST_CASE("--check-config prints what is in effect, and warnings apart") {
  const auto got =
      parse({"--check-config", "--hostname-override=n", "--kube-api-qps=50", "--cleanup"});
  REQUIRE(got);
  CHECK(got->exit_code == 0);
  CHECK(got->text == got->options.effective_yaml);
  CHECK(has(got->text, "kubeShunt:\n"));
  CHECK(has(got->diagnostics, "clientConnection.qps"));
  CHECK_FALSE(parse({"--check-config", "--bind-address=x"}));
}

TEST_CASE("--write-config-to writes a file that says the same") {
  const File file("");
  const auto got =
      parse({"--write-config-to", file.path, "--hostname-override=n", "--cluster-cidr=10.0.0.0/8"});
  REQUIRE(got);
  CHECK(got->exit_code == 0);
  CHECK(got->text.empty());
  const auto again = parse({"--config", file.path});
  CHECK(error_of(again).empty());
  REQUIRE(again);
  CHECK(again->options.node_name == "n");
  CHECK(again->options.cluster_cidrs == got->options.cluster_cidrs);
  CHECK(has(error_of(parse({"--write-config-to=/no/such/dir/file"})), "--write-config-to"));
}

TEST_CASE("what to do instead of running is said by flags") {
  CHECK(parse({"--init-only"})->options.init_only);
  CHECK(parse({"--cleanup"})->options.cleanup);
  CHECK(parse({"--cleanup-kube-proxy"})->options.cleanup_kube_proxy);
  const Options o = parse({"--v=0"})->options;
  CHECK_FALSE((o.init_only || o.cleanup || o.cleanup_kube_proxy));
}

}  // namespace
}  // namespace shunt::config
