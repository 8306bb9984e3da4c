#include "packet/gauges.h"

#include <catch2/catch_test_macros.hpp>

using namespace shunt::conformance::packet;  // NOLINT(google-build-using-namespace): a test file

TEST_CASE("gauges are summed over the families") {
  const auto gauges = gauges_in_metrics(
      "# HELP kubeproxy_sync_proxy_rules_no_local_endpoints_total Number of\n"
      "# TYPE kubeproxy_sync_proxy_rules_no_local_endpoints_total gauge\n"
      "kubeproxy_sync_proxy_rules_no_local_endpoints_total"
      "{ip_family=\"IPv4\",traffic_policy=\"external\"} 2\n"
      "kubeproxy_sync_proxy_rules_no_local_endpoints_total"
      "{ip_family=\"IPv4\",traffic_policy=\"internal\"} 0\n"
      "kubeproxy_sync_proxy_rules_no_local_endpoints_total"
      "{ip_family=\"IPv6\",traffic_policy=\"external\"} 1e+00\n"
      "process_cpu_seconds_total 3");
  REQUIRE(gauges);
  CHECK(*gauges == nlohmann::json{{"external", 3}, {"internal", 0}});
}

TEST_CASE("metrics without the gauges are no zeros") {
  CHECK_FALSE(gauges_in_metrics(""));
  CHECK_FALSE(gauges_in_metrics("process_cpu_seconds_total 3\n"));
  CHECK_FALSE(gauges_in_metrics("kubeproxy_sync_proxy_rules_no_local_endpoints_total{"));
}
