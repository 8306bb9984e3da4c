#include "config/flags.h"

#include <catch2/catch_test_macros.hpp>

#include "config/testing.h"

namespace shunt::config {
namespace {

using testing::error_of;
using testing::has;

TEST_CASE("flags are read as kube-proxy's library reads them") {
  const struct {
    std::vector<std::string> arguments;
    const char* flag;
    Value value;
  } cases[] = {
      {{"--conntrack-min", "7"}, "conntrack-min", std::int64_t{7}},
      {{"--conntrack-min=0x10"}, "conntrack-min", std::int64_t{16}},
      {{"--conntrack_min=7"}, "conntrack-min", std::int64_t{7}},
      {{"--oom-score-adj", "-500"}, "oom-score-adj", std::int64_t{-500}},
      {{"--kube-api-qps=2.5"}, "kube-api-qps", 2.5},
      {{"--masquerade-all"}, "masquerade-all", true},
      {{"--masquerade-all=f"}, "masquerade-all", false},
      {{"--masquerade-all", "--masquerade-all=false"}, "masquerade-all", false},
      {{"-v2"}, "v", std::int64_t{2}},
      {{"-v=3"}, "v", std::int64_t{3}},
      {{"-v", "4"}, "v", std::int64_t{4}},
      {{"--v=5"}, "v", std::int64_t{5}},
      {{"-h"}, "help", true},
      {{"--version=raw"}, "version", true},
      {{"--cluster-cidr="}, "cluster-cidr", std::string()},
      {{"--cluster-cidr", "--weird"}, "cluster-cidr", std::string("--weird")},
      {{"--conntrack-udp-timeout=-1s"}, "conntrack-udp-timeout", Nanos{-1'000'000'000}},
      {{"--nodeport-addresses=a,b", "--nodeport-addresses=c"},
       "nodeport-addresses",
       std::vector<std::string>{"a", "b", "c"}},
      {{"--feature-gates=A=true,B=false", "--feature-gates=B=true, C=false"},
       "feature-gates",
       Gates{{"A", true}, {"B", true}, {"C", false}}},
      {{"--vmodule=a*=2", "--vmodule=b=3"},
       "vmodule",
       std::vector<VerbosityOfFiles>{{"a*", 2}, {"b", 3}}},
      {{"--log-json-info-buffer-size=64Ki"}, "log-json-info-buffer-size", std::string("64Ki")},
  };
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.arguments.front() << " " << c.arguments.back()) {
      const auto flags = parse_flags(c.arguments);
      REQUIRE(flags);
      REQUIRE(flags->contains(c.flag));
      CHECK(flags->at(c.flag) == c.value);
      CHECK(flags->size() == 1);
    }
  }
}

TEST_CASE("arguments that cannot be read are refused by name") {
  const struct {
    std::vector<std::string> arguments;
    const char* named;
  } cases[] = {
      {{"--no-such-flag"}, "no-such-flag"},
      {{"-x"}, "-x"},
      {{"argument"}, "argument"},
      {{"--masquerade-all", "false"}, "false"},
      {{"--masquerade-all=perhaps"}, "--masquerade-all"},
      {{""}, "flag"},
      {{"--"}, "--"},
      {{"--conntrack-min"}, "--conntrack-min"},
      {{"--conntrack-min="}, "--conntrack-min"},
      {{"--conntrack-min", "3000000000"}, "conntrack.min"},
      {{"--v=-1"}, "--v"},
      {{"--kube-api-qps=many"}, "clientConnection.qps"},
      {{"--conntrack-tcp-timeout-established", "day"}, "conntrack.tcpEstablishedTimeout"},
      {{"--conntrack-udp-timeout", "30"}, "conntrack.udpTimeout"},
      {{"--conntrack-udp-timeout-stream", ""}, "conntrack.udpStreamTimeout"},
      {{"--iptables-sync-period", "soon"}, "syncPeriod"},
      {{"--feature-gates=A"}, "--feature-gates"},
      {{"--feature-gates=A=maybe"}, "--feature-gates"},
      {{"--vmodule=a"}, "--vmodule"},
      {{"--vmodule==2"}, "--vmodule"},
      {{"--log-text-info-buffer-size=much"}, "infoBufferSize"},
  };
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.named << " " << c.arguments.back()) {
      CHECK(has(error_of(parse_flags(c.arguments)), c.named));
    }
  }
}

TEST_CASE("an error is one line, whatever was typed") {
  const std::string error = error_of(parse_flags({"--x\n\x1b" + std::string(5000, 'y')}));
  CHECK_FALSE(has(error, "\n"));
  CHECK(error.size() < 300);
}

TEST_CASE("integers are Go's") {
  CHECK(parse_integer("10") == 10);
  CHECK(parse_integer("-0x1F") == -31);
  CHECK(parse_integer("0b101") == 5);
  CHECK(parse_integer("0o17") == 15);
  CHECK(parse_integer("017") == 15);
  CHECK(parse_integer("0") == 0);
  for (const char* bad : {"", "-", "1x", "0x", "0z1", "08", "--1", " 1", "9223372036854775808"}) {
    CHECK_FALSE(parse_integer(bad));
  }
}

TEST_CASE("durations are Go's") {
  using std::chrono::milliseconds;
  CHECK(parse_duration("30s") == Millis{30'000});
  CHECK(parse_duration("1m30s") == Millis{90'000});
  CHECK(parse_duration("1.5h") == Millis{5'400'000});
  CHECK(parse_duration(".5s") == Millis{500});
  CHECK(parse_duration("100ms") == Millis{100});
  CHECK(parse_duration("0") == Millis{0});
  CHECK(parse_duration("0s") == Millis{0});
  CHECK(parse_go_duration("-1.5s") == Nanos{-1'500'000'000});
  CHECK(parse_go_duration("2\u00b5s3ns") == Nanos{2'003});
  for (const char* bad :
       {"",
        "5",
        "s",
        "-1s",
        "1x",
        "1s ",
        "nan",
        "1e3s",
        "inf",
        ".s",
        "1e300h",
        "+",
        "9999999999h"}) {
    CHECK_FALSE(parse_duration(bad));
  }
}

TEST_CASE("durations are printed as Go prints them, and read back") {
  const struct {
    const char* given;
    const char* printed;
  } cases[] = {
      {"0", "0s"},
      {"900s", "15m0s"},
      {"24h", "24h0m0s"},
      {"1.5s", "1.5s"},
      {"100ms", "100ms"},
      {"1500us", "1.5ms"},
      {"1us", "1\u00b5s"},
      {"7ns", "7ns"},
      {"-90s", "-1m30s"},
      {"1h0.25s", "1h0m0.25s"},
  };
  for (const auto& c : cases) {
    const auto parsed = parse_go_duration(c.given);
    REQUIRE(parsed);
    CHECK(go_duration(*parsed) == c.printed);
    CHECK(parse_go_duration(c.printed) == parsed);
  }
}

}  // namespace
}  // namespace shunt::config
