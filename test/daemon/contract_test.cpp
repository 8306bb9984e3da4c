// The contract of the back ends: after the same changes, packets from everywhere to everything get
// the same answers, whichever back end gives them.
//
// But for two questions to Services without endpoints, which kube-proxy's modes, and so the cases
// of the bank, answer differently: the node itself at an address beyond it (pf-020: the iptables
// mode lets it out), and whoever may not ask a restricted balancer (pf-023: it refuses them as
// well).

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "daemon/iptables_world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {
namespace {

using nlohmann::json;

constexpr unsigned kServices = 5;

struct Pod {
  const char* name;  // of its place, and of the server in it
  const char* ip;
  const char* node;
};
constexpr std::array<Pod, 4> kPods{
    {{"web1", "10.64.0.1", "edge-a"},
     {"web2", "10.64.0.2", "edge-a"},
     {"web3", "10.64.0.3", "edge-a"},
     {"outside", "10.64.1.1", "edge-b"}}};

// What is asked of one Service.
struct Doors {
  net::Protocol protocol = net::Protocol::Tcp;
  std::vector<std::string> addresses;
  std::set<std::string> beyond;      // of these, those that no node has
  std::set<std::string> restricted;  // to some sources
};

struct Step {
  std::vector<json> apply;
  std::vector<std::string> remove;  // Services
  std::map<unsigned, Doors> doors;  // of all Services there are by then
  bool checkpoint = false;
};

// The same for every back end.
class Script {
 public:
  Script(unsigned seed, int checkpoints) : random_(seed) {
    for (unsigned n = 0; n < kServices; ++n) {
      Step step;
      step.apply = {service_of(n), slice_of(n)};
      add(std::move(step), false);
    }
    for (int i = 0; i < checkpoints * 4; ++i) {
      add(change(), i % 4 == 3);
    }
  }
  std::vector<Step> steps;

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_()) % n; }

  void add(Step step, bool checkpoint) {
    step.doors = doors_;
    step.checkpoint = checkpoint;
    steps.push_back(std::move(step));
  }
  Step change() {
    Step step;
    const unsigned n = below(kServices);
    switch (below(8)) {
      case 0:
        if (doors_.erase(n) > 0) {
          step.remove.push_back(name(n));
        }
        break;
      case 1:
      case 2:
        step.apply.push_back(service_of(n));
        break;
      default:
        step.apply.push_back(slice_of(n));
    }
    return step;
  }

  static std::string name(unsigned n) { return "s" + std::to_string(n); }
  // Fixed for good, as the API has it for ports in use.
  static bool is_udp(unsigned n) { return n == 4; }

  json service_of(unsigned n) {
    const std::string number = std::to_string(10 + n);
    Doors doors;
    doors.protocol = is_udp(n) ? net::Protocol::Udp : net::Protocol::Tcp;
    doors.addresses = {"10.112.0." + number + ":80"};
    json out = service(name(n), {"10.112.0." + number});
    json& spec = out["spec"];
    spec["ports"][0]["protocol"] = is_udp(n) ? "UDP" : "TCP";
    if (below(4) == 0) {
      spec["internalTrafficPolicy"] = "Local";
    }
    if (below(3) > 0) {
      spec["type"] = "NodePort";
      spec["ports"][0]["nodePort"] = 30080 + n;
      spec["externalTrafficPolicy"] = below(2) == 0 ? "Local" : "Cluster";
      doors.addresses.push_back("10.80.0.10:" + std::to_string(30080 + n));
      if (below(2) == 0) {
        spec["type"] = "LoadBalancer";
        out["status"]["loadBalancer"]["ingress"] = {{{"ip", "192.0.2." + number}}};
        doors.addresses.push_back("192.0.2." + number + ":80");
        doors.beyond.insert(doors.addresses.back());
        if (below(3) == 0) {
          doors.restricted.insert(doors.addresses.back());
          spec["loadBalancerSourceRanges"] = {below(2) == 0 ? "198.51.100.0/24" : "203.0.113.0/24"};
        }
      }
    }
    if (below(3) == 0) {
      spec["externalIPs"] = {"192.0.2.1" + number};
      doors.addresses.push_back("192.0.2.1" + number + ":80");
      doors.beyond.insert(doors.addresses.back());
    }
    doors_[n] = doors;
    return out;
  }
  json slice_of(unsigned n) {
    std::vector<const Pod*> chosen;
    const unsigned few = below(4);
    for (const Pod& pod : kPods) {
      if (below(4) < few) {
        chosen.push_back(&pod);
      }
    }
    std::vector<std::string> ips;
    ips.reserve(chosen.size());
    for (const Pod* pod : chosen) {
      ips.emplace_back(pod->ip);
    }
    json out = slice(name(n), "IPv4", ips);
    out["ports"][0]["protocol"] = is_udp(n) ? "UDP" : "TCP";
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      json& endpoint = out["endpoints"][i];
      const unsigned kind = below(5);
      endpoint["nodeName"] = chosen[i]->node;
      endpoint["conditions"] = {
          {"ready", kind > 1}, {"serving", kind > 0}, {"terminating", kind <= 1}};
    }
    return out;
  }

  std::mt19937 random_;
  std::map<unsigned, Doors> doors_;
};

lab::LabSpec pods_and_a_client() {
  lab::LabSpec spec = lab::default_lab_spec();
  spec.pods.push_back({"client", {net::parse_ip("10.64.0.9").value()}});
  for (const Pod& pod : kPods) {
    if (std::string(pod.name) != "outside") {
      spec.pods.push_back({pod.name, {net::parse_ip(pod.ip).value()}});
    }
  }
  return spec;
}

struct Source {
  const char* place;
  const char* from;  // nullptr: whatever the kernel takes
};
constexpr std::array<Source, 3> kSources{
    {{"outside", "198.51.100.7:0"}, {"client", "10.64.0.9:0"}, {"node", nullptr}}};

// Everybody who answers, and whether they saw the one who asked.
std::string answers(const World& world, const Source& source, const Doors& doors, const char* to) {
  // Three of four may be missed in one of a thousand million.
  constexpr int kTries = 72;
  std::set<std::string> by;
  for (int i = 0; i < kTries; ++i) {
    lab::Question question;
    question.protocol = doors.protocol;
    if (source.from != nullptr) {
      question.from = address(source.from);
    }
    question.to = address(to);
    // Once somebody has answered, a lost packet is TCP's to mend.
    question.timeout = std::chrono::milliseconds(by.empty() ? 120 : 3500);
    const lab::Answer answer = lab::ask(world.lab().place(source.place), question);
    switch (answer.kind) {
      case lab::Answer::Kind::Answered: {
        const bool kept = question.from && address(answer.seen_as).ip == question.from->ip;
        by.insert(answer.by + (question.from ? kept ? " sees it" : " sees the node" : ""));
        break;
      }
      case lab::Answer::Kind::Refused:
        return by.empty() ? "refused" : "some are refused";
      case lab::Answer::Kind::TimedOut:
        return by.empty() ? "silence" : "some get no answer";
      case lab::Answer::Kind::Failed:
        return "failed: " + std::to_string(answer.sys_errno);
    }
  }
  std::string out;
  for (const std::string& name : by) {
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

struct Answered {
  std::string answer;
  std::string by_iptables;  // where that mode differs; else ""
};
// By "checkpoint, source, destination".
using Record = std::map<std::string, Answered>;

Answered with_differences(
    std::string answer, const Source& source, const Doors& doors, const std::string& to) {
  if (answer == "refused" && doors.beyond.contains(to) && source.from == nullptr) {
    return {std::move(answer), "silence"};
  }
  if (answer == "silence" && doors.restricted.contains(to)) {
    return {std::move(answer), source.from == nullptr ? "" : "refused"};
  }
  return {std::move(answer), ""};
}

Record play(const Script& script, const std::string& mode, const json& more) {
  World world(configured_by_file(pods_and_a_client()));
  std::vector<std::unique_ptr<lab::EchoServer>> servers;
  for (const Pod& pod : kPods) {
    for (const net::Protocol protocol : {net::Protocol::Tcp, net::Protocol::Udp}) {
      servers.push_back(std::make_unique<lab::EchoServer>(
          world.lab().place(pod.name), protocol, address(std::string(pod.ip) + ":8080"), pod.name));
    }
  }
  start_in_mode(world, mode, more);
  Record record;
  int checkpoint = 0;
  for (const Step& step : script.steps) {
    if (!step.apply.empty()) {
      world.apply(step.apply);
    }
    for (const std::string& name : step.remove) {
      world.remove("Service", name);
    }
    if (!step.checkpoint) {
      continue;
    }
    ++checkpoint;
    world.settle(std::chrono::seconds(60));
    for (const auto& [n, doors] : step.doors) {
      for (const std::string& to : doors.addresses) {
        for (const Source& source : kSources) {
          const std::string what = std::to_string(checkpoint) + ": s" + std::to_string(n) + ", " +
                                   source.place + " to " + to;
          record[what] =
              with_differences(answers(world, source, doors, to.c_str()), source, doors, to);
        }
      }
    }
  }
  return record;
}

void check_same(const Record& expected, const Record& got, const std::string& who) {
  CHECK(expected.size() == got.size());
  const bool iptables = who.starts_with("iptables");
  for (const auto& [what, wanted] : expected) {
    const std::string& answer = got.at(what).answer;
    INFO(what << ": nftables: " << wanted.answer << "; " << who << ": " << answer);
    CHECK((answer == wanted.answer || (iptables && answer == wanted.by_iptables)));
  }
}

void check_variety(const Record& record) {
  std::map<std::string, int> kinds;
  int different = 0;
  for (const auto& [what, answered] : record) {
    ++kinds[answered.answer];
    different += answered.by_iptables.empty() ? 0 : 1;
  }
  std::printf(
      "%zu questions; refused: %d, silence: %d; iptables may differ in %d\n",
      record.size(),
      kinds["refused"],
      kinds["silence"],
      different);
  CHECK(record.size() > 80);
  CHECK(kinds.size() > 8);
  CHECK(kinds["refused"] > 3);
  CHECK(kinds["silence"] > 1);
  CHECK(different * 10 < static_cast<int>(record.size()));
}

TEST_CASE(
    "the back ends give the same packets the same answers: nftables, iptables of both kinds") {
  const std::string variant = GENERATE(as<std::string>{}, "nft", "legacy");
  SHUNT_NEEDS_IPTABLES(variant);
  const Script script(2026, 8);
  const Record expected = play(script, "nftables", json::object());
  check_variety(expected);
  check_same(expected, play(script, "iptables", with_variant(variant)), "iptables-" + variant);
}

TEST_CASE(
    "the back ends give the same packets the same answers: nftables, ipvs, iptables", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  const Script script(7, 4);  // where this runs, everything takes long
  const Record expected = play(script, "nftables", json::object());
  check_variety(expected);
  check_same(expected, play(script, "ipvs", json::object()), "ipvs");
  check_same(expected, play(script, "iptables", with_variant("nft")), "iptables-nft");
}

}  // namespace
}  // namespace shunt::test
