#include "bench/suite/report.h"

#include <catch2/catch_test_macros.hpp>

#include "bench/suite/options.h"
#include "bench/suite/samples.h"

namespace shunt::bench {
namespace {

TEST_CASE("a percentile is one of the values") {
  Samples samples;
  for (int i = 100; i >= 1; --i) {
    samples.add(i);
  }
  CHECK(samples.median() == 50);
  CHECK(samples.p99() == 99);
  CHECK(samples.largest() == 100);
  CHECK(Samples{7}.p99() == 7);
  CHECK(Samples{}.median() == 0);
}

TEST_CASE("figures have three digits") {
  CHECK(three_digits(0) == "0");
  CHECK(three_digits(0.0123456) == "0.0123");
  CHECK(three_digits(1.2345) == "1.23");
  CHECK(three_digits(99.96) == "100.0");
  CHECK(three_digits(123.45) == "123");
  CHECK(three_digits(1234567) == "1234567");
  CHECK(three_digits(-2.5) == "-2.50");
}

TEST_CASE("sizes are read as they are written") {
  CHECK(parse_count("10k") == 10'000);
  CHECK(parse_count("250") == 250);
  CHECK_FALSE(parse_count("10m"));
  CHECK_FALSE(parse_count("k"));
  CHECK_FALSE(parse_count("-1"));
  CHECK(short_count(10'000) == "10k");
  CHECK(short_count(1'500) == "1500");
}

TEST_CASE("a target is met or missed, and a row without figures meets none") {
  Row row{"flip", "1k", "ms", {1, 2, 3}};
  row.against("floor", {1, 1, 1});
  row.want_median_below(3);
  row.want_ratio_below(2.5);
  CHECK(row.met());
  row.want_p99_below(3);
  CHECK_FALSE(row.met());

  Row exact{"messages", "1k", "", {0, 0}};
  exact.want_exactly(0);
  CHECK(exact.met());
  exact.measured.add(1);
  Row again{"messages", "1k", "", exact.measured};
  again.want_exactly(0);
  CHECK_FALSE(again.met());

  Row unmeasured{"flip", "1k", "ms"};
  unmeasured.want_median_below(3);
  unmeasured.want_ratio_below(3);
  unmeasured.want_exactly(0);
  CHECK(unmeasured.targets.size() == 3);
  for (const Target& target : unmeasured.targets) {
    CHECK_FALSE(target.met);
  }
}

TEST_CASE("the table says what was missed, skipped and failed") {
  Report report;
  Row missed{"flip", "1k", "ms", {9}};
  missed.want_median_below(3);
  report.add(missed);
  report.add({"memory", "1k", "MB", {20}});
  report.skip("chains", "too many");
  report.fail("restart at 1k", "no status\nlog line");
  CHECK(report.missed() == 2);

  const std::string table = report.table({2, "cpu", "6.1", "abc", "Release"});
  CHECK(table.find("2 cores (cpu), Linux 6.1, commit abc, Release build") != std::string::npos);
  CHECK(table.find("9.00 ms") != std::string::npos);
  CHECK(table.find("MISSED") != std::string::npos);
  CHECK(table.find("SKIP chains: too many\n") != std::string::npos);
  CHECK(table.find("FAILED restart at 1k: no status\n") != std::string::npos);
  CHECK(table.find("kube-proxy") == std::string::npos);

  report.find("memory", "1k")->kube_proxy.add(270);
  CHECK(report.table({}).find("kube-proxy") != std::string::npos);
  CHECK(report.table({}).find("270 MB") != std::string::npos);
}

TEST_CASE("JSON has every figure") {
  Report report;
  Row row{"flip", "1k", "ms", {1, 2}};
  row.against("floor", {0.5});
  row.want_median_below(3);
  report.add(row);
  const nlohmann::json out = report.json({2, "cpu", "6.1", "abc", "Release"});
  CHECK(out.at("rows").size() == 1);
  const auto& first = out.at("rows").at(0);
  CHECK(first.at("measured").at("samples") == nlohmann::json({1.0, 2.0}));
  CHECK(first.at("against").at("name") == "floor");
  CHECK(first.at("ratio") == 2.0);
  CHECK(first.at("targets").at(0).at("met") == true);
  CHECK(out.at("machine").at("cores") == 2);
}

}  // namespace
}  // namespace shunt::bench
