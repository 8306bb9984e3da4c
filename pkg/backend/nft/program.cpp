#include "backend/nft/program.h"

#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "backend/nft/affinity.h"
#include "backend/nft/program_sets.h"
#include "backend/nft/program_version.h"
#include "backend/nft/rule_writer.h"

namespace shunt::backend::nft {
namespace {

constexpr int kTries = 8;
// The set `self` is asked by the rule that follows the one that writes it; any time will do.
constexpr std::chrono::seconds kSelfTimeout{1};
// How long an endpoint counts as answering after the last connection to it began: as long as the
// kernel keeps an idle TCP connection (nf_conntrack_tcp_timeout_established, five days).
constexpr std::chrono::seconds kAnsweringTimeout{5 * 24 * 3600};

constexpr net::Protocol kProtocols[] = {
    net::Protocol::Tcp, net::Protocol::Udp, net::Protocol::Sctp};

std::string pick_name(Place place, unsigned bits) {
  return "pick-" + place_prefix(place) + std::to_string(1U << bits);
}
std::string dispatch_name(Place place) {
  switch (place) {
    case Place::Plain:
      return "dispatch";
    case Place::Local:
      return "dispatch-local";
    case Place::NodePort:
      return "dispatch-nodeport";
    case Place::NodePortLocal:
      return "dispatch-nodeport-local";
  }
  return "";
}
const char* sticky_map_name(Place place) {
  switch (place) {
    case Place::Plain:
      return "sticky-ips";
    case Place::Local:
      return "sticky-local-ips";
    case Place::NodePort:
      return "sticky-nodeports";
    case Place::NodePortLocal:
      return "sticky-local-nodeports";
  }
  return "";
}

// Not "remember-": that begins the chains of affinity.
std::string remember_name(net::Protocol protocol, bool node_port) {
  const char* name = protocol == net::Protocol::Tcp   ? "tcp"
                     : protocol == net::Protocol::Udp ? "udp"
                                                      : "sctp";
  return std::string(name) + (node_port ? "-nodeport" : "") + "-remember";
}

void add_chains(Program& program, bool for_ipvs) {
  using Hook = Chain::Hook;
  auto& chains = program.chains;
  for (const Place place : kPlaces) {
    for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
      chains.push_back({pick_name(place, bits), {}});
    }
    chains.push_back({dispatch_name(place), {}});
  }
  for (const char* name :
       {"mark-for-masquerade",
        "external-local",
        "external-local-nodeport",
        "service",
        "nodeport",
        "services",
        "masquerade-self",
        "remember",
        "firewall",
        "no-endpoints",
        "no-endpoints-nodeport",
        "cluster-ips-check"}) {
    chains.push_back({name, {}});
  }
  for (const net::Protocol protocol : kProtocols) {
    chains.push_back({remember_name(protocol, false), {}});
    chains.push_back({remember_name(protocol, true), {}});
  }
  const auto base =
      [&](const char* name, Hook::Type type, Hook::Point point, std::int32_t priority) {
        chains.push_back({name, Hook{type, point, priority}});
      };
  base("nat-prerouting", Hook::Type::Nat, Hook::Point::Prerouting, -100);
  base("nat-output", Hook::Type::Nat, Hook::Point::Output, -100);
  base("nat-postrouting", Hook::Type::Nat, Hook::Point::Postrouting, 100);
  base("nat-input", Hook::Type::Nat, Hook::Point::Input, 100);
  base("filter-prerouting", Hook::Type::Filter, Hook::Point::Prerouting, -110);
  base("filter-output-pre-nat", Hook::Type::Filter, Hook::Point::Output, -110);
  base("filter-input", Hook::Type::Filter, Hook::Point::Input, 0);
  base("filter-forward", Hook::Type::Filter, Hook::Point::Forward, 0);
  base("filter-output", Hook::Type::Filter, Hook::Point::Output, 0);
  if (for_ipvs) {
    chains.push_back({"mark-for-ipvs", {}});
    // After the translation of destinations (-100): what it sent elsewhere is not for IPVS. And
    // before IPVS looks at what the node sends itself (-98).
    base("ipvs-prerouting", Hook::Type::Filter, Hook::Point::Prerouting, -95);
    base("ipvs-output", Hook::Type::Filter, Hook::Point::Output, -99);
  }
}

class RuleList {
 public:
  RuleList(Program& program, const ProgramSettings& settings)
      : program_(program), writer_(program.family), settings_(settings) {}

  void add_all() {
    for (const Place place : kPlaces) {
      add_picks(place);
      add_dispatch(place);
    }
    add_services();
    add_postrouting();
    if (for_ipvs()) {
      add_ipvs();
    }
    add_filters();
  }

 private:
  bool for_ipvs() const { return settings_.local_mark != 0; }

  void rule(std::string chain, Expressions expressions, std::string comment = {}) {
    program_.rules.push_back({std::move(chain), std::move(expressions), std::move(comment)});
  }

  Expressions key(Place place) const {
    return is_of_node_ports(place) ? writer_.node_port() : writer_.frontend();
  }

  // Draws below the class size until a slot that exists is hit: at least half the draws hit, and
  // after eight misses the last rules draw among the slots that surely exist. The class of four
  // holds one to four endpoints, so it ends with two rules: two slots may not exist, slot 0 always
  // does.
  void add_picks(Place place) {
    const std::uint32_t slot =
        is_of_node_ports(place) ? RuleWriter::after_node_port() : writer_.after_frontend();
    const auto pick = [&](unsigned bits, std::uint32_t modulus) {
      rule(
          pick_name(place, bits),
          key(place) + Expressions{
                           RandomNumber{slot, modulus},
                           Lookup{slot_map_name(place), 1, 1},
                           DestinationNat{1, writer_.port_of_nat()}});
    };
    for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
      for (int i = 0; i < kTries; ++i) {
        pick(bits, 1U << bits);
      }
      pick(bits, 1U << (bits - 1));
      if (bits == kSmallestClassBits) {
        pick(bits, 1);
      }
    }
  }

  void add_dispatch(Place place) {
    rule(
        dispatch_name(place),
        key(place) + Expressions{verdict_of(sticky_map_name(place))},
        "a client that is remembered");
    for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
      rule(
          dispatch_name(place),
          key(place) + Expressions{member(class_name(place, bits)), go_to(pick_name(place, bits))});
    }
  }

  // Traffic of a local pod; nothing when it cannot be told.
  std::optional<Expressions> from_local_pod(bool yes) const {
    using Kind = LocalDetector::Kind;
    const auto op = yes ? Compare::Op::Equal : Compare::Op::NotEqual;
    std::vector<std::uint8_t> name(settings_.detector.name.begin(), settings_.detector.name.end());
    switch (settings_.detector.kind) {
      case Kind::None:
        return std::nullopt;
      case Kind::SourceRange:
        return Expressions{writer_.source(1), member(yes ? "pod-cidrs" : "outsider-cidrs")};
      case Kind::InputInterface:
        name.resize(16);  // an exact name is compared over all its bytes
        [[fallthrough]];
      case Kind::InputInterfacePrefix:
        return Expressions{LoadMeta{LoadMeta::Key::IifName, 1}, Compare{op, 1, std::move(name)}};
    }
    return std::nullopt;
  }

  // externalTrafficPolicy Local: pods and the node itself may use any endpoint, outsiders only
  // those here (spec/nftables.md §6).
  void add_external_local(const char* chain, Place cluster, Place local) {
    if (const auto from_pod = from_local_pod(true)) {
      rule(chain, *from_pod + Expressions{go_to(dispatch_name(cluster))}, "short cut for pods");
    }
    const Expressions from_node = is_local_address(LoadAddressType::Of::Source);
    rule(chain, from_node + Expressions{jump("mark-for-masquerade")});
    rule(chain, from_node + Expressions{go_to(dispatch_name(cluster))}, "short cut for the node");
    rule(chain, {go_to(dispatch_name(local))});
  }

  void add_services() {
    const std::uint32_t mark = settings_.masquerade_mark;
    const Expression load_mark = LoadMeta{LoadMeta::Key::Mark, 1};
    rule("mark-for-masquerade", {load_mark, Bitwise{1, ~mark, mark}, SetMark{1}});
    add_external_local("external-local", Place::Plain, Place::Local);
    add_external_local("external-local-nodeport", Place::NodePort, Place::NodePortLocal);

    if (for_ipvs()) {
      rule(
          "service",
          {writer_.source(1), member("ipvs-addresses"), jump("mark-for-masquerade")},
          "a connection whose source is a Service's address");
    }
    const Expressions to_cluster_ip{writer_.destination(1), member("cluster-ips")};
    if (settings_.masquerade_all) {
      rule(
          "service",
          to_cluster_ip + Expressions{jump("mark-for-masquerade")},
          "masquerade all ClusterIP traffic");
    } else if (const auto from_outside = from_local_pod(false)) {
      rule(
          "service",
          to_cluster_ip + *from_outside + Expressions{jump("mark-for-masquerade")},
          "masquerade ClusterIP traffic that no local pod sent");
    }
    rule(
        "service",
        writer_.frontend() + Expressions{member("external-local-ips"), go_to("external-local")});
    rule(
        "service",
        writer_.frontend() + Expressions{member("external-ips"), jump("mark-for-masquerade")});
    rule("service", {go_to("dispatch")});
    rule(
        "nodeport",
        writer_.node_port() +
            Expressions{member("external-local-nodeports"), go_to("external-local-nodeport")});
    rule("nodeport", {jump("mark-for-masquerade")});
    rule("nodeport", {go_to("dispatch-nodeport")});

    rule("services", writer_.frontend() + Expressions{member("service-ips"), go_to("service")});
    // The cheap questions first: most packets are no business of ours.
    rule(
        "services",
        Expressions{writer_.destination(1), member("nodeport-ips")} + writer_.node_port() +
            Expressions{member("service-nodeports")} +
            is_local_address(LoadAddressType::Of::Destination) + Expressions{go_to("nodeport")});
    rule("nat-prerouting", {jump("services")});
    rule("nat-output", {jump("services")});
  }

  // NAT chains see the first packet of a connection and no other: what is remembered here is what
  // was chosen, however long a one-way sender goes on.
  void add_postrouting() {
    const std::uint32_t mark = settings_.masquerade_mark;
    const Expression load_mark = LoadMeta{LoadMeta::Key::Mark, 1};
    // What IPVS sent elsewhere has the reply of its connection changed, but no such status.
    const Expressions translated = for_ipvs() ? Expressions{} : ct_status_dnat();
    rule("nat-input", translated + Expressions{jump("remember")});
    rule("nat-postrouting", translated + Expressions{jump("remember")});
    rule(
        "nat-postrouting",
        bits_set(load_mark, mark) +
            Expressions{load_mark, Bitwise{1, 0xffffffff, mark}, SetMark{1}, Masquerade{}});
    rule("nat-postrouting", ct_status_dnat() + Expressions{jump("masquerade-self")});
    // No expression compares two addresses of a packet. But (s, s, ...) is in the set now, so
    // (s, d, ...) is in it if s equals d: an endpoint that was sent to itself would see its own
    // address as the sender's.
    rule(
        "masquerade-self",
        writer_.sender_pair() + Expressions{UpdateSet{"self", 1, std::nullopt, kSelfTimeout}});
    rule(
        "masquerade-self",
        writer_.packet_pair() + Expressions{member("self"), Masquerade{}},
        "an endpoint that reaches itself through a Service");

    for (const net::Protocol protocol : kProtocols) {
      add_remember(protocol);
    }
  }

  // What another program rewrote is left out: a connection is ours if it was sent to a frontend. In
  // nft a port of `ct original` needs its protocol named, hence rules for each.
  void add_remember(net::Protocol protocol) {
    const std::string of_address = remember_name(protocol, false);
    const std::string of_node_port = remember_name(protocol, true);
    const auto ours = [&](const Expressions& key, const char* set, const std::string& chain) {
      rule("remember", protocol_is(protocol) + key + Expressions{member(set), go_to(chain)});
    };
    ours(writer_.original_destination(), "cluster-ips", of_address);
    ours(writer_.original_frontend(), "external-ips", of_address);
    ours(writer_.original_frontend(), "external-local-ips", of_address);
    ours(writer_.original_node_port(), "external-nodeports", of_node_port);
    ours(writer_.original_node_port(), "external-local-nodeports", of_node_port);
    for (const bool node_port : {false, true}) {
      const std::string chain = remember_name(protocol, node_port);
      if (protocol != net::Protocol::Udp) {  // which has no invalid answers worth the trouble
        rule(
            chain,
            protocol_is(protocol) + writer_.answering_endpoint() +
                Expressions{UpdateSet{"answering", 1, std::nullopt, kAnsweringTimeout}});
      }
      rule(
          chain,
          protocol_is(protocol) +
              (node_port ? writer_.original_node_port() : writer_.original_frontend()) +
              Expressions{verdict_of(node_port ? "remember-nodeports" : "remember-ips")});
    }
  }

  // IPVS takes packets that the host takes for its own; addresses of Services are not, or every
  // port of the host would answer there. So what is sent to a frontend is marked, and a rule of
  // routing delivers what is marked. ICMP is delivered whole: errors that routers send about
  // connections of IPVS, which IPVS translates, and echo requests.
  void add_ipvs() {
    const std::uint32_t mark = settings_.local_mark;
    const Expression load_mark = LoadMeta{LoadMeta::Key::Mark, 1};
    const int icmp = program_.family == net::Family::IPv4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6};
    rule("mark-for-ipvs", {load_mark, Bitwise{1, ~mark, mark}, SetMark{1}});
    rule(
        "ipvs-prerouting",
        protocol_is(static_cast<net::Protocol>(icmp)) +
            Expressions{writer_.destination(1), member("ipvs-addresses"), jump("mark-for-ipvs")});
    rule(
        "ipvs-prerouting",
        writer_.frontend() + Expressions{member("ipvs-ips"), jump("mark-for-ipvs")});
    // For the node's own connections over IPv6 the kernel prefers the address that they go to as
    // their source (RFC 6724, rule 1), if any device has it; a run of kube-proxy had it for IPv4,
    // too. So they are masqueraded, and the answers come back to that address.
    rule(
        "ipvs-prerouting",
        ct_direction_reply() +
            Expressions{writer_.destination(1), member("ipvs-addresses"), jump("mark-for-ipvs")});
    // The mark has done its work.
    rule(
        "filter-input",
        bits_set(load_mark, mark) + Expressions{load_mark, Bitwise{1, ~mark, 0}, SetMark{1}});
    // What the node sends itself would be IPVS's before filter-output sees it.
    rule("ipvs-output", ct_state_new() + Expressions{jump("no-endpoints")});
    for (const net::Protocol protocol : kProtocols) {
      add_ipvs_hairpin(protocol);
    }
  }

  // What IPVS sent elsewhere is known by where it was sent at first.
  void add_ipvs_hairpin(net::Protocol protocol) {
    const auto ours = [&](const Expressions& key, const char* set) {
      rule(
          "nat-postrouting",
          protocol_is(protocol) + key + Expressions{member(set), jump("masquerade-self")});
    };
    ours(writer_.original_frontend(), "ipvs-ips");
    // Not on loopback, where everything is sent to its sender.
    ours(
        writer_.original_destination() + Expressions{member("nodeport-ips")} +
            writer_.original_node_port(),
        "service-nodeports");
  }

  void add_filters() {
    rule(
        "firewall",
        writer_.frontend() + Expressions{member("restricted-ips")} + writer_.frontend_source() +
            Expressions{member("allowed-sources", true), drop()},
        "loadBalancerSourceRanges");
    rule("no-endpoints", writer_.frontend() + Expressions{member("refused-ips"), Reject{}});
    rule("no-endpoints", writer_.frontend() + Expressions{member("dropped-ips"), drop()});
    const Expressions node_port =
        Expressions{writer_.destination(1), member("nodeport-ips")} + writer_.node_port();
    rule("no-endpoints-nodeport", node_port + Expressions{member("refused-nodeports"), Reject{}});
    rule("no-endpoints-nodeport", node_port + Expressions{member("dropped-nodeports"), drop()});
    rule(
        "cluster-ips-check",
        {writer_.destination(1), member("cluster-ips"), Reject{}},
        "a port that the ClusterIP does not have");
    rule(
        "cluster-ips-check",
        {writer_.destination(1), member("service-cidrs"), drop()},
        "a ClusterIP that nobody has");

    for (const char* chain : {"filter-prerouting", "filter-output-pre-nat"}) {
      rule(chain, ct_state_new() + Expressions{jump("firewall")});
    }
    if (settings_.drop_invalid) {
      // The kernel does not undo NAT for a packet that it finds invalid: the client would get it
      // from the endpoint itself and reset its connection. Only answers of our endpoints; whatever
      // else is invalid is nobody's business here.
      for (const char* chain : {"filter-input", "filter-forward"}) {
        rule(
            chain,
            ct_state_invalid() + writer_.sender() + Expressions{member("answering"), drop()});
      }
    }
    // no-endpoints before cluster-ips-check: a Service without local endpoints is dropped, only
    // unknown ports are refused. Valid traffic was rewritten at -100 and no longer carries a
    // ClusterIP here.
    rule("filter-input", ct_state_new() + Expressions{jump("no-endpoints-nodeport")});
    rule("filter-input", ct_state_new() + Expressions{jump("no-endpoints")});
    for (const char* chain : {"filter-forward", "filter-output"}) {
      rule(chain, ct_state_new() + Expressions{jump("no-endpoints")});
      rule(chain, ct_state_new() + Expressions{jump("cluster-ips-check")});
    }
  }

  Program& program_;
  RuleWriter writer_;
  const ProgramSettings& settings_;
};

}  // namespace

Program make_program(net::Family family, const ProgramSettings& settings) {
  Program program;
  program.family = family;
  program.sets = program_sets(settings.local_mark != 0);
  add_chains(program, settings.local_mark != 0);
  RuleList(program, settings).add_all();
  program.comment = "kube-shunt program " + program_version(program, affinity_sample(family));
  return program;
}

}  // namespace shunt::backend::nft
