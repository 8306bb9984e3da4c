#include "app/preflight.h"

#include <linux/capability.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <ios>

#include "app/ipvs_settings.h"
#include "app/kernel.h"
#include "base/log.h"
#include "config/sanity.h"
#include "netlink/ipvs.h"
#include "netlink/link_kind.h"
#include "netlink/messages.h"
#include "netlink/socket.h"

namespace shunt::app {
namespace {

std::optional<bool> has_net_admin(const std::string& root) {
  std::ifstream status(root + "/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "CapEff:") {
      std::uint64_t capabilities = 0;
      if (status >> std::hex >> capabilities) {
        return (capabilities >> CAP_NET_ADMIN & 1U) != 0;
      }
      break;
    }
  }
  return std::nullopt;
}

// The number of nf_tables' generation: the smallest question there is. It makes the kernel load the
// module where it may.
std::optional<bool> answers_nf_tables() {
  auto socket = netlink::Socket::open();
  if (!socket) {
    const int error = socket.error().sys_errno;
    return error == EPROTONOSUPPORT || error == EAFNOSUPPORT ? std::optional(false) : std::nullopt;
  }
  netlink::Messages question(NFNL_SUBSYS_NFTABLES);
  question.begin(NFT_MSG_GETGEN, 0, AF_UNSPEC);
  question.end();
  question.ask_for_answer();
  std::vector<netlink::MessageError> errors;
  bool answered = false;
  const auto asked = (*socket)->ask(question, errors, [&](auto) { answered = true; });
  if (!asked || (!answered && errors.empty())) {
    return std::nullopt;
  }
  if (answered) {
    return true;
  }
  // Without the right to ask, nothing is known. A subsystem that is not there is EINVAL.
  const int error = errors.front().sys_errno;
  return error == EPERM || error == EACCES ? std::nullopt : std::optional(false);
}

// Only to find out what is missing: the socket goes again.
std::optional<bool> answers_ipvs() {
  const auto socket = netlink::ipvs::Socket::open();
  if (socket) {
    return true;
  }
  return socket.error().code == Errc::Unsupported ? std::optional(false) : std::nullopt;
}

std::optional<bool> is_on(const std::string& path) {
  int value = 0;
  return std::ifstream(path) >> value ? std::optional(value != 0) : std::nullopt;
}

std::optional<bool> has_conntrack(const std::string& root) {
  if (::access((root + "/proc/sys/net").c_str(), F_OK) != 0) {
    return std::nullopt;  // no /proc to tell
  }
  return ::access((root + "/proc/sys/net/netfilter").c_str(), F_OK) == 0;
}

}  // namespace

std::vector<Finding> preflight(const Facts& facts) {
  std::vector<Finding> findings;
  if (facts.net_admin == false) {
    findings.push_back(
        {true,
         "the capability CAP_NET_ADMIN is missing",
         "add NET_ADMIN to the container's securityContext.capabilities.add, or run as root"});
  }
  if (facts.nf_tables == false) {
    findings.push_back(
        {false,
         "the kernel has no nf_tables",
         "load the module nf_tables on the host (modprobe nf_tables), or use a kernel with "
         "CONFIG_NF_TABLES"});
  }
  if (facts.conntrack == false) {
    findings.push_back(
        {false,
         "the kernel has no connection tracking (/proc/sys/net/netfilter is missing)",
         "load the module nf_conntrack on the host (modprobe nf_conntrack), or use a kernel with "
         "CONFIG_NF_CONNTRACK"});
  }
  if (facts.ipvs == false) {
    findings.push_back(
        {false,
         "the kernel has no IPVS",
         "load the module ip_vs on the host (modprobe ip_vs), or use a kernel with CONFIG_IP_VS, "
         "or another mode"});
  }
  if (facts.dummy == false) {
    findings.push_back(
        {false,
         "the kernel has no dummy devices",
         "load the module dummy on the host (modprobe dummy), or use a kernel with CONFIG_DUMMY"});
  }
  const auto forwarding = [&](std::optional<bool> on, const char* family, const char* sysctl) {
    if (on == false) {
      findings.push_back(
          {false,
           std::string(family) + " forwarding is off, so pods do not reach Services of other nodes",
           std::string("set ") + sysctl + " to 1 on the host; most network plugins do"});
    }
  };
  forwarding(facts.ipv4_forwarding, "IPv4", "net.ipv4.ip_forward");
  forwarding(facts.ipv6_forwarding, "IPv6", "net.ipv6.conf.all.forwarding");
  return findings;
}

Result<config::Mode> judge_settings(const config::Options& options, const Facts& facts) {
  const auto decision =
      config::decide_mode(options.mode, facts.nf_tables.value_or(true), facts.ipvs.value_or(true));
  if (!decision.available) {
    return fail(Errc::Unsupported, decision.why);
  }
  if (options.mode == config::Mode::Ipvs && facts.dummy == false) {
    return fail(
        Errc::Unsupported,
        "ipvs, as configured; but the kernel has no dummy devices (module dummy), of which "
        "kube-ipvs0 is one");
  }
  const std::string& scheduler = options.ipvs.scheduler;
  if (options.mode == config::Mode::Ipvs && facts.ipvs == true &&
      has_ipvs_scheduler(scheduler) == false) {
    return fail(
        Errc::Unsupported,
        "ipvs.scheduler: the kernel has none of the name " + scheduler + " (module ip_vs_" +
            scheduler + ")");
  }
  log::info("back end chosen", {log::kv("why", decision.why)});
  for (const config::Doubt& doubt : config::doubts(options, families_of_host())) {
    if (doubt.fatal) {
      return fail(Errc::Invalid, doubt.what);
    }
    log::warn("configuration", {log::kv("what", doubt.what)});
  }
  return decision.back_end == config::BackEnd::Iptables ? config::Mode::Iptables : options.mode;
}

Facts gather_facts(config::Mode mode, const std::string& root) {
  Facts facts;
  facts.net_admin = has_net_admin(root);
  facts.nf_tables = answers_nf_tables();
  facts.conntrack = has_conntrack(root);
  facts.ipv4_forwarding = is_on(root + "/proc/sys/net/ipv4/ip_forward");
  facts.ipv6_forwarding = is_on(root + "/proc/sys/net/ipv6/conf/all/forwarding");
  if (mode == config::Mode::Ipvs) {
    facts.ipvs = answers_ipvs();
    facts.dummy = netlink::makes_links("dummy");
  }
  return facts;
}

}  // namespace shunt::app
