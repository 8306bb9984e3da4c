#include "backend/nft/program.h"

#include <algorithm>
#include <utility>

#include "backend/nft/program_version.h"

namespace shunt::backend::nft {
namespace {

constexpr std::uint32_t kCtStateNew = 0x8;     // NF_CT_STATE_BIT(IP_CT_NEW)
constexpr std::uint32_t kCtStatusDnat = 0x20;  // IPS_DST_NAT
constexpr int kTries = 8;

using Expressions = std::vector<Expression>;

// Writes expressions the way nft does for one family: which registers a concatenation uses depends
// on the size of an address (spec/nftables.md §8).
class Writer {
 public:
  explicit Writer(net::Family family) : v6_(family == net::Family::IPv6) {}

  Expression destination(std::uint32_t reg) const {
    return LoadPayload{LoadPayload::Base::Network, v6_ ? 24U : 16U, v6_ ? 16U : 4U, reg};
  }
  Expression source(std::uint32_t reg) const {
    return LoadPayload{LoadPayload::Base::Network, v6_ ? 8U : 12U, v6_ ? 16U : 4U, reg};
  }

  // daddr . l4proto . dport in registers from 1 on; `after` is the register that follows.
  Expressions frontend() const {
    return {destination(1), LoadMeta{LoadMeta::Key::L4Proto, v6_ ? 2U : 9U}, port(v6_ ? 13 : 10)};
  }
  std::uint32_t after_frontend() const { return v6_ ? 14 : 11; }

  Expressions hairpin() const {
    return {
        source(1),
        destination(v6_ ? 2 : 9),
        LoadMeta{LoadMeta::Key::L4Proto, v6_ ? 3U : 10U},
        port(v6_ ? 17 : 11)};
  }
  std::uint32_t port_of_nat() const { return v6_ ? 2 : 9; }

 private:
  static Expression port(std::uint32_t reg) {
    return LoadPayload{LoadPayload::Base::Transport, 2, 2, reg};
  }
  bool v6_;
};

Expressions operator+(Expressions left, const Expressions& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Expression jump(std::string chain) { return Verdict{Verdict::Kind::Jump, std::move(chain)}; }
Expression go_to(std::string chain) { return Verdict{Verdict::Kind::Goto, std::move(chain)}; }
Expression drop() { return Verdict{Verdict::Kind::Drop, {}}; }
Expression member(std::string set, bool invert = false) {
  return Lookup{std::move(set), 1, std::nullopt, invert};
}

Expressions bits_set(Expression load, std::uint32_t bits) {
  return {std::move(load), Bitwise{1, bits, 0}, Compare{Compare::Op::NotEqual, 1, {0, 0, 0, 0}}};
}
Expressions ct_state_new() { return bits_set(LoadCt{LoadCt::Key::State, 1}, kCtStateNew); }
Expressions ct_status_dnat() { return bits_set(LoadCt{LoadCt::Key::Status, 1}, kCtStatusDnat); }

// Matches traffic that is not from a local pod.
Expressions not_local(const Writer& writer, const LocalDetector& detector) {
  switch (detector.kind) {
    case LocalDetector::Kind::None:
      return {};
    case LocalDetector::Kind::SourceRange:
      return {writer.source(1), member("pod-cidrs", true)};
    case LocalDetector::Kind::InputInterface: {
      // An exact name is compared over all sixteen bytes, a prefix over its own length only.
      std::vector<std::uint8_t> name(16, 0);
      std::copy(detector.name.begin(), detector.name.end(), name.begin());
      return {
          LoadMeta{LoadMeta::Key::IifName, 1}, Compare{Compare::Op::NotEqual, 1, std::move(name)}};
    }
    case LocalDetector::Kind::InputInterfacePrefix:
      return {
          LoadMeta{LoadMeta::Key::IifName, 1},
          Compare{
              Compare::Op::NotEqual,
              1,
              std::vector<std::uint8_t>(detector.name.begin(), detector.name.end())}};
  }
  return {};
}

std::string class_name(unsigned bits) { return "class-" + std::to_string(1U << bits); }
std::string pick_name(unsigned bits) { return "pick-" + std::to_string(1U << bits); }

void add_sets(Program& program) {
  auto& sets = program.sets;
  sets.push_back(
      {SetId::ClusterIps,
       "cluster-ips",
       KeyShape::Address,
       false,
       false,
       false,
       "active ClusterIPs"});
  sets.push_back(
      {SetId::ServiceIps,
       "service-ips",
       KeyShape::Frontend,
       false,
       true,
       false,
       "every frontend, and its new connections"});
  sets.push_back(
      {SetId::RefusedIps,
       "refused-ips",
       KeyShape::Frontend,
       false,
       false,
       false,
       "frontends without endpoints"});
  sets.push_back(
      {SetId::DroppedIps,
       "dropped-ips",
       KeyShape::Frontend,
       false,
       false,
       false,
       "frontends of policy Local without local endpoints"});
  sets.push_back(
      {SetId::ServiceCidrs,
       "service-cidrs",
       KeyShape::Address,
       true,
       false,
       false,
       "ranges that ClusterIPs come from"});
  sets.push_back(
      {SetId::PodCidrs,
       "pod-cidrs",
       KeyShape::Address,
       true,
       false,
       false,
       "ranges that tell traffic of pods"});
  sets.push_back(
      {SetId::Hairpin,
       "hairpin",
       KeyShape::Hairpin,
       false,
       false,
       false,
       "endpoints on this node that may reach themselves through a Service"});
  sets.push_back(
      {SetId::Endpoints,
       "endpoints",
       KeyShape::FrontendSlot,
       false,
       false,
       true,
       "the endpoint in each slot of a frontend"});
  for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
    sets.push_back(
        {class_set(bits), class_name(bits), KeyShape::Frontend, false, false, false, {}});
  }
}

void add_chains(Program& program) {
  using Hook = Chain::Hook;
  auto& chains = program.chains;
  for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
    chains.push_back({pick_name(bits), {}});
  }
  for (const char* name :
       {"dispatch",
        "mark-for-masquerade",
        "service",
        "services",
        "no-endpoints",
        "cluster-ips-check"}) {
    chains.push_back({name, {}});
  }
  chains.push_back({"nat-prerouting", Hook{Hook::Type::Nat, Hook::Point::Prerouting, -100}});
  chains.push_back({"nat-output", Hook{Hook::Type::Nat, Hook::Point::Output, -100}});
  chains.push_back({"nat-postrouting", Hook{Hook::Type::Nat, Hook::Point::Postrouting, 100}});
  chains.push_back({"filter-input", Hook{Hook::Type::Filter, Hook::Point::Input, 0}});
  chains.push_back({"filter-forward", Hook{Hook::Type::Filter, Hook::Point::Forward, 0}});
  chains.push_back({"filter-output", Hook{Hook::Type::Filter, Hook::Point::Output, 0}});
}

// Draws below the class size until a slot that exists is hit: at least half the draws hit, and
// after eight misses the last rules draw among the slots that surely exist. The class of four holds
// one to four endpoints, so it ends with two rules: two slots may not exist, slot 0 always does.
void add_picks(Program& program, const Writer& writer) {
  const auto pick = [&](unsigned bits, std::uint32_t modulus) {
    const std::uint32_t slot = writer.after_frontend();
    program.rules.push_back(
        {pick_name(bits),
         writer.frontend() +
             Expressions{
                 RandomNumber{slot, modulus},
                 Lookup{"endpoints", 1, 1},
                 DestinationNat{1, writer.port_of_nat()}},
         {}});
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

void add_rules(Program& program, const Writer& writer, const ProgramSettings& settings) {
  const auto rule = [&](std::string chain, Expressions expressions, std::string comment = {}) {
    program.rules.push_back({std::move(chain), std::move(expressions), std::move(comment)});
  };
  add_picks(program, writer);
  for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
    rule(
        "dispatch",
        writer.frontend() + Expressions{member(class_name(bits)), go_to(pick_name(bits))});
  }

  const std::uint32_t mark = settings.masquerade_mark;
  const Expression load_mark = LoadMeta{LoadMeta::Key::Mark, 1};
  rule("mark-for-masquerade", {load_mark, Bitwise{1, ~mark, mark}, SetMark{1}});

  const Expressions to_cluster_ip{writer.destination(1), member("cluster-ips")};
  if (settings.masquerade_all) {
    rule(
        "service",
        to_cluster_ip + Expressions{jump("mark-for-masquerade")},
        "masquerade all ClusterIP traffic");
  } else if (settings.detector.kind != LocalDetector::Kind::None) {
    rule(
        "service",
        to_cluster_ip + not_local(writer, settings.detector) +
            Expressions{jump("mark-for-masquerade")},
        "masquerade ClusterIP traffic that no local pod sent");
  }
  rule("service", {go_to("dispatch")});
  rule("services", writer.frontend() + Expressions{member("service-ips"), go_to("service")});
  rule("nat-prerouting", {jump("services")});
  rule("nat-output", {jump("services")});

  rule(
      "nat-postrouting",
      bits_set(load_mark, mark) +
          Expressions{load_mark, Bitwise{1, 0xffffffff, mark}, SetMark{1}, Masquerade{}});
  rule(
      "nat-postrouting",
      ct_status_dnat() + writer.hairpin() + Expressions{member("hairpin"), Masquerade{}},
      "an endpoint that reaches itself through a Service");

  rule("no-endpoints", writer.frontend() + Expressions{member("refused-ips"), Reject{}});
  rule("no-endpoints", writer.frontend() + Expressions{member("dropped-ips"), drop()});
  rule(
      "cluster-ips-check",
      to_cluster_ip + Expressions{Reject{}},
      "a port that the ClusterIP does not have");
  rule(
      "cluster-ips-check",
      {writer.destination(1), member("service-cidrs"), drop()},
      "a ClusterIP that nobody has");
  // no-endpoints before cluster-ips-check: a Service without local endpoints is dropped, only
  // unknown ports are refused. Valid traffic was rewritten at -100 and no longer carries a
  // ClusterIP here.
  rule("filter-input", ct_state_new() + Expressions{jump("no-endpoints")});
  for (const char* chain : {"filter-forward", "filter-output"}) {
    rule(chain, ct_state_new() + Expressions{jump("no-endpoints")});
    rule(chain, ct_state_new() + Expressions{jump("cluster-ips-check")});
  }
}

}  // namespace

Program make_program(net::Family family, const ProgramSettings& settings) {
  Program program;
  program.family = family;
  const Writer writer(family);
  add_sets(program);
  add_chains(program);
  add_rules(program, writer, settings);
  program.comment = "kube-shunt program " + program_version(program);
  return program;
}

}  // namespace shunt::backend::nft
