#include "obs/metrics.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <set>
#include <sstream>
#include <thread>

#include "obs/buckets.h"
#include "obs/sample.h"

namespace shunt::obs {
namespace {

using net::Family;

const std::vector<Family> kBoth{Family::IPv4, Family::IPv6};

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// Of a metric with these labels; "" when it is not there.
std::string value_of(const std::string& text, const std::string& series) {
  const std::size_t at = ("\n" + text).find("\n" + series + " ");
  if (at == std::string::npos) {
    return "";
  }
  const std::size_t start = at + series.size() + 1;
  return text.substr(start, text.find('\n', start) - start);
}

TEST_CASE("kube-proxy's metrics have kube-proxy's names, types and help") {
  Metrics metrics({"0.1.0", "abc", "now"}, kBoth, sample_suppliers());
  for (const Family family : kBoth) {
    tell_everything(metrics, family);
  }
  const std::string text = metrics.text();
  struct Case {
    const char* name;
    const char* type;
    const char* help;
  };
  const Case cases[] = {
      {"sync_proxy_rules_duration_seconds", "histogram", "SyncProxyRules latency in seconds"},
      {"sync_full_proxy_rules_duration_seconds",
       "histogram",
       "SyncProxyRules latency in seconds for full resyncs"},
      {"sync_partial_proxy_rules_duration_seconds",
       "histogram",
       "SyncProxyRules latency in seconds for partial resyncs"},
      {"sync_proxy_rules_last_timestamp_seconds",
       "gauge",
       "The last time proxy rules were successfully synced"},
      {"sync_proxy_rules_last_queued_timestamp_seconds",
       "gauge",
       "The last time a sync of proxy rules was queued"},
      {"network_programming_duration_seconds",
       "histogram",
       "In Cluster Network Programming Latency in seconds"},
      {"sync_proxy_rules_endpoint_changes_pending",
       "gauge",
       "Pending proxy rules Endpoint changes"},
      {"sync_proxy_rules_endpoint_changes_total",
       "counter",
       "Cumulative proxy rules Endpoint changes"},
      {"sync_proxy_rules_service_changes_pending", "gauge", "Pending proxy rules Service changes"},
      {"sync_proxy_rules_service_changes_total",
       "counter",
       "Cumulative proxy rules Service changes"},
      {"sync_proxy_rules_no_local_endpoints_total",
       "gauge",
       "Number of services with a Local traffic policy and no endpoints"},
      {"proxy_healthz_total", "counter", "Cumulative proxy healthz HTTP status"},
      {"proxy_livez_total", "counter", "Cumulative proxy livez HTTP status"},
      {"sync_proxy_rules_nftables_sync_failures_total",
       "counter",
       "Cumulative proxy nftables sync failures"},
      {"sync_proxy_rules_nftables_cleanup_failures_total",
       "counter",
       "Cumulative proxy nftables cleanup failures"},
      {"sync_proxy_rules_iptables_total",
       "gauge",
       "Total number of iptables rules owned by kube-proxy"},
      {"sync_proxy_rules_iptables_last",
       "gauge",
       "Number of iptables rules written by kube-proxy in last sync"},
      {"sync_proxy_rules_iptables_restore_failures_total",
       "counter",
       "Cumulative proxy iptables restore failures"},
      {"sync_proxy_rules_iptables_partial_restore_failures_total",
       "counter",
       "Cumulative proxy iptables partial restore failures"},
      {"conntrack_reconciler_sync_duration_seconds",
       "histogram",
       "ReconcileConntrackFlowsLatency latency in seconds"},
      {"conntrack_reconciler_deleted_entries_total",
       "counter",
       "Cumulative conntrack flows deleted by conntrack reconciler"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const std::string name = std::string("kubeproxy_") + c.name;
      CHECK(has_line(text, "# HELP " + name + " [ALPHA] " + c.help));
      CHECK(has_line(text, "# TYPE " + name + " " + c.type));
    }
  }
}

TEST_CASE("what is told is what is said") {
  Metrics metrics({}, kBoth, sample_suppliers());
  tell_everything(metrics, Family::IPv4);
  const std::string text = metrics.text();
  const auto value = [&](const std::string& series) { return value_of(text, series); };
  CHECK(value(R"(kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"})") == "3");
  CHECK(
      value(R"(kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"})") == "1");
  CHECK(
      value(R"(kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.001"})") ==
      "2");
  CHECK(
      value(R"(kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"})") == "1");
  for (const char* failures :
       {"kubeproxy_sync_proxy_rules_iptables_restore_failures_total",
        "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total"}) {
    CHECK(value(std::string(failures) + R"({ip_family="IPv4"})") == "1");
  }
  const std::string rules = "kubeproxy_sync_proxy_rules_iptables_";
  CHECK(value(rules + R"(total{ip_family="IPv4",table="nat"})") == "8");
  CHECK(value(rules + R"(last{ip_family="IPv4",table="filter"})") == "1");
  CHECK(value("kubeproxy_sync_proxy_rules_endpoint_changes_total") == "2");
  CHECK(value("kubeproxy_sync_proxy_rules_endpoint_changes_pending") == "0");
  CHECK(
      value(R"(kubeproxy_sync_proxy_rules_no_local_endpoints_total)"
            R"({ip_family="IPv4",traffic_policy="external"})") == "2");
  CHECK(value(R"(kubeproxy_proxy_healthz_total{code="503"})") == "1");
  CHECK(value(R"(kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv6"})") == "12");
  CHECK(value(R"(kubeshunt_drift_repairs_total{ip_family="IPv4",kind="element"})") == "2");
  CHECK(value(R"(kubeshunt_drift_repairs_total{ip_family="IPv4",kind="unknown"})") == "1");
  CHECK(value(R"(kubeshunt_drift_repairs_total{ip_family="IPv4",kind="table"})") == "0");
  CHECK(value(R"(kubeshunt_api_contact_age_seconds{resource="services"})") == "1.5");
  CHECK(value(R"(kubeshunt_api_contact_age_seconds{resource="endpointslices"})").empty());
  CHECK(
      value(R"(kubeshunt_service_new_connections_total{namespace="shop",service="web",)"
            R"(port_name="http",protocol="TCP",ip_family="IPv4"})") == "42");
  CHECK(
      value(R"(rest_client_requests_total{code="200",host="10.0.0.1:6443",method="GET"})") == "1");
  CHECK(value("kubeshunt_first_sync_duration_seconds") == "0.8");
}

TEST_CASE("connections of the same labels are added up, a page may not repeat itself") {
  const Metrics metrics({}, {Family::IPv4}, sample_suppliers());
  std::set<std::string> seen;
  std::istringstream lines(metrics.text());
  int connections = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string series = line.substr(0, line.rfind(' '));
    CHECK(seen.insert(line.starts_with("#") ? line : series).second);
    connections += line.starts_with("kubeshunt_service_new_connections_total{") ? 1 : 0;
    CHECK((line.find("\"web\"") == std::string::npos || line.ends_with(" 42")));
  }
  CHECK(connections == 2);
}

TEST_CASE("a family that is not served and a supplier that is not there say nothing") {
  Metrics metrics({}, {Family::IPv6}, {});
  tell_everything(metrics, Family::IPv4);
  const std::string text = metrics.text();
  CHECK(text.find("duration_seconds_count{ip_family=\"IPv4\"}") == std::string::npos);
  CHECK(text.find("kubeshunt_frontends") == std::string::npos);
  CHECK(text.find("kubeproxy_proxy_healthz_total") == std::string::npos);
  CHECK(metrics.slis().empty());
}

TEST_CASE("what the process needs is told") {
  const Metrics metrics({"0.1.0", "abc", "now"}, kBoth, {});
  const std::string text = metrics.text();
  const auto number = [&](const char* name) { return std::stod("0" + value_of(text, name)); };
  CHECK(number("process_resident_memory_bytes") > 100'000);
  CHECK(number("process_virtual_memory_bytes") > number("process_resident_memory_bytes"));
  CHECK(number("process_open_fds") >= 3);
  CHECK(number("process_max_fds") > number("process_open_fds"));
  const auto now = Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
  CHECK(number("process_start_time_seconds") > now - 3600);
  CHECK(number("process_start_time_seconds") < now + 60);
  CHECK(
      text.find("git_version=\"v0.1.0\",go_version=\"\",major=\"0\",minor=\"1\"") !=
      std::string::npos);
}

TEST_CASE("checks are a page of their own") {
  const Metrics metrics({}, kBoth, sample_suppliers());
  CHECK(has_line(metrics.slis(), R"(kubernetes_healthcheck{name="ping",type="healthz"} 1)"));
  CHECK(has_line(
      metrics.slis(),
      R"(kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 5)"));
  CHECK(metrics.text().find("kubernetes_healthcheck") == std::string::npos);
}

TEST_CASE("buckets are kube-proxy's") {
  CHECK(sync_buckets().size() == 15);
  CHECK(sync_buckets().back() == 16.384);
  const auto programming = programming_buckets();
  CHECK(programming.size() == 2 + 59 + 12 + 7);
  CHECK(programming.back() == 300);
  CHECK(std::ranges::is_sorted(programming));
}

TEST_CASE("threads may tell and scrape at once") {
  Metrics metrics({}, kBoth, sample_suppliers());
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        tell_everything(metrics, Family::IPv4);
      }
    });
  }
  for (int n = 0; n < 20; ++n) {
    CHECK(!metrics.text().empty());
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(value_of(metrics.text(), "kubeproxy_sync_proxy_rules_endpoint_changes_total") == "1200");
}

// By hand: test_obs "[.cost]". What one flip of an endpoint costs its sync.
TEST_CASE("cost of a flip", "[.cost]") {
  Metrics metrics({}, kBoth, {});
  constexpr int kFlips = 1'000'000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kFlips; ++i) {
    metrics.endpoint_changes(1);
    metrics.queued(Family::IPv4);
    metrics.changes_taken();
    metrics.committed(Family::IPv4, {Seconds(0.0001), 5, 600, 3});
    metrics.synced(Family::IPv4, {Seconds(0.0004), false, true});
    metrics.programmed(Family::IPv4, Seconds(0.4));
    metrics.without_local(Family::IPv4, 0, 0);
  }
  const Seconds took = std::chrono::steady_clock::now() - start;
  std::printf("%.0f ns a flip\n", took.count() / kFlips * 1e9);
}

TEST_CASE("cost of a scrape", "[.cost]") {
  Suppliers suppliers = sample_suppliers();
  suppliers.connections = [] {
    std::vector<Suppliers::Connections> out;
    out.reserve(1000);
    for (int i = 0; i < 1000; ++i) {
      out.push_back({"shop", "web-" + std::to_string(i), "http", "TCP", "IPv4", 40});
    }
    return out;
  };
  const Metrics metrics({}, kBoth, suppliers);
  constexpr int kScrapes = 50;
  std::size_t size = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kScrapes; ++i) {
    size = metrics.text().size();
  }
  const Seconds took = std::chrono::steady_clock::now() - start;
  std::printf("%.2f ms a scrape of %zu bytes\n", took.count() / kScrapes * 1e3, size);
}

}  // namespace
}  // namespace shunt::obs
