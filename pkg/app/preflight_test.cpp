#include "app/preflight.h"

#include <stdlib.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

namespace shunt::app {
namespace {

namespace fs = std::filesystem;

bool names(const Finding& finding, const char* word) {
  return (finding.what + " " + finding.how).find(word) != std::string::npos;
}

TEST_CASE("a node that has everything, and one of which nothing is known, have no findings") {
  CHECK(preflight({}).empty());
  CHECK(preflight({true, true, true, true, true, true, true}).empty());
}

TEST_CASE("what is missing is named with the way to get it") {
  const struct {
    Facts facts;
    bool fatal;
    const char* what;
    const char* how;
  } cases[] = {
      {{false, {}, {}, {}, {}, {}, {}}, true, "CAP_NET_ADMIN", "securityContext"},
      {{{}, false, {}, {}, {}, {}, {}}, false, "nf_tables", "modprobe nf_tables"},
      {{{}, {}, false, {}, {}, {}, {}}, false, "connection tracking", "modprobe nf_conntrack"},
      {{{}, {}, {}, false, {}, {}, {}}, false, "IPv4 forwarding", "net.ipv4.ip_forward"},
      {{{}, {}, {}, {}, false, {}, {}}, false, "IPv6 forwarding", "net.ipv6.conf.all.forwarding"},
      {{{}, {}, {}, {}, {}, false, {}}, false, "IPVS", "modprobe ip_vs"},
      {{{}, {}, {}, {}, {}, {}, false}, false, "dummy devices", "modprobe dummy"}};
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.what) {
      const auto findings = preflight(c.facts);
      REQUIRE(findings.size() == 1);
      CHECK(findings[0].fatal == c.fatal);
      CHECK(names(findings[0], c.what));
      CHECK(names(findings[0], c.how));
    }
  }
  CHECK(preflight({false, false, false, false, false, false, false}).size() == 7);
}

// A directory that looks like /proc.
class Machine {
 public:
  Machine() {
    char name[] = "/tmp/kube-shunt-preflight-XXXXXX";
    root = ::mkdtemp(name);
  }
  ~Machine() { fs::remove_all(root); }
  void set(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  std::string root;
};

TEST_CASE("facts are read where they can be, and are unknown elsewhere") {
  const Machine machine;
  const Facts nothing = gather_facts(config::Mode::Auto, machine.root);
  CHECK_FALSE(nothing.net_admin);
  CHECK_FALSE(nothing.conntrack);
  CHECK_FALSE(nothing.ipv4_forwarding);
  CHECK_FALSE(nothing.ipv6_forwarding);

  machine.set(
      "/proc/self/status", "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t0000000000001000\n");
  machine.set("/proc/sys/net/ipv4/ip_forward", "0\n");
  machine.set("/proc/sys/net/ipv6/conf/all/forwarding", "1\n");
  const Facts some = gather_facts(config::Mode::Auto, machine.root);
  CHECK(some.net_admin == true);
  CHECK(some.conntrack == false);
  CHECK(some.ipv4_forwarding == false);
  CHECK(some.ipv6_forwarding == true);

  machine.set("/proc/self/status", "CapEff:\t000001ffffffefff\n");
  machine.set("/proc/sys/net/netfilter/nf_conntrack_max", "1\n");
  const Facts other = gather_facts(config::Mode::Auto, machine.root);
  CHECK(other.net_admin == false);
  CHECK(other.conntrack == true);

  machine.set("/proc/self/status", "CapEff:\tmany\n");
  CHECK_FALSE(gather_facts(config::Mode::Auto, machine.root).net_admin);
}

TEST_CASE("on a kernel that we may ask, nf_tables answers or is known to be missing") {
  const Facts facts = gather_facts(config::Mode::Auto);
  if (facts.net_admin != true) {
    SKIP("without CAP_NET_ADMIN the kernel does not say");
  }
  CHECK(facts.nf_tables.has_value());
}

TEST_CASE("IPVS and dummy devices are asked for where the mode needs them, and nowhere else") {
  for (const config::Mode mode : {config::Mode::Auto, config::Mode::Nftables}) {
    const Facts facts = gather_facts(mode);
    CHECK_FALSE(facts.ipvs);
    CHECK_FALSE(facts.dummy);
  }
  if (gather_facts(config::Mode::Auto).net_admin != true) {
    SKIP("without CAP_NET_ADMIN the kernel does not say");
  }
  const Facts facts = gather_facts(config::Mode::Ipvs);
  CHECK(facts.ipvs.has_value());
  CHECK(facts.dummy.has_value());
}

TEST_CASE("mode ipvs is refused on a kernel without IPVS, nf_tables or dummy devices") {
  config::Options options;
  options.mode = config::Mode::Ipvs;
  Facts facts;
  CHECK(judge_settings(options, facts));  // nothing is known
  facts.nf_tables = facts.ipvs = facts.dummy = true;
  CHECK(judge_settings(options, facts));
  for (const auto missing : {&Facts::nf_tables, &Facts::ipvs, &Facts::dummy}) {
    Facts less = facts;
    less.*missing = false;
    CHECK_FALSE(judge_settings(options, less));
    options.mode = config::Mode::Nftables;
    CHECK(judge_settings(options, less).has_value() == (missing != &Facts::nf_tables));
    options.mode = config::Mode::Ipvs;
  }
}

}  // namespace
}  // namespace shunt::app
