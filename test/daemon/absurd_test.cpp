// One malformed or absurd object of each kind among a thousand good Services: the good ones work,
// the absurd one loses only itself and is named, and when it is mended it works.

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <thread>

#include "daemon/absurd_objects.h"
#include "daemon/crowd.h"
#include "daemon/needs_root.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr char kLongestIp[] = "10.112.201.1";

json node(const std::vector<std::pair<const char*, const char*>>& addresses) {
  json out = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "edge-a"}}}};
  for (const auto& [type, address] : addresses) {
    out["status"]["addresses"].push_back({{"type", type}, {"address", address}});
  }
  return out;
}

json good_node() { return node({{"InternalIP", "10.80.0.10"}, {"InternalIP", "fd80::10"}}); }

json absurd_node() {
  json out = node(
      {{"InternalIP", "gopher"},
       {"InternalIP", "10.80.0.10"},
       {"Gopher", "10.80.0.99"},
       {"InternalIP", "fd80::10"}});
  out["spec"]["podCIDRs"] = {"gopher", "10.64.0.0/99"};
  return out;
}

json absurd_cidr() {
  return {
      {"apiVersion", "networking.k8s.io/v1"},
      {"kind", "ServiceCIDR"},
      {"metadata", {{"name", "absurd"}}},
      {"spec", {{"cidrs", {"10.120.0.0/24", "gopher", "10.114.0.0/99"}}}}};
}

std::string kernel_key(std::string frontend) {
  return frontend.replace(frontend.find(':'), 1, " . tcp . ");
}

void remove(const World& world, const json& object) {
  const json& metadata = object["metadata"];
  world.admin(
      "POST",
      "/_test/delete",
      json::array({{{"kind", object["kind"]},
                    {"namespace", metadata.value("namespace", "")},
                    {"name", metadata["name"]}}})
          .dump());
}

void check_longest(const Pods& pods, const TableListing& table) {
  CHECK(table.has("service-ips", std::string(kLongestIp) + " . tcp . 80"));
  CHECK(pods.ask(std::string(kLongestIp) + ":80") == "10.64.0.4");
}

// What is left of each absurd object is in the kernel and works, and nothing else of it.
void check_absurd(const std::vector<Absurd>& cases, const TableListing& table, const Pods& pods) {
  std::size_t listed = kCrowd + 1;
  for (const Absurd& absurd : cases) {
    INFO(absurd.name);
    std::string missing;
    for (const std::string& frontend : absurd.works) {
      missing += table.has("service-ips", kernel_key(frontend)) ? "" : frontend + " ";
    }
    for (const std::string& frontend : absurd.works) {
      const std::size_t wanted = absurd.name == "five-thousand-addresses" ? 5000 : 1;
      const std::size_t slots = table.count("endpoints", kernel_key(frontend));
      missing += slots == wanted ? "" : std::to_string(slots) + " endpoints of " + frontend + " ";
    }
    for (const std::string& frontend : absurd.refuses) {
      missing += table.has("refused-ips", kernel_key(frontend)) ? "" : frontend + " ";
    }
    CHECK(missing.empty());
    listed += absurd.works.size() + absurd.refuses.size();
    // Those five thousand are on no link of this lab.
    if (!absurd.works.empty() && absurd.name != "five-thousand-addresses") {
      CHECK(pods.ask(absurd.works.front()) == "10.64.0.4");
    }
  }
  CHECK(table.size("service-ips") == listed);
}

void check_named(const std::vector<Absurd>& cases, const std::string& log) {
  for (const Absurd& absurd : cases) {
    INFO(absurd.name);
    CHECK((absurd.named.empty() || complains(log, absurd.named)));
  }
  CHECK(complains(log, "edge-a", "gopher"));
  CHECK(complains(log, "absurd", "gopher"));
  CHECK_FALSE(complains(log, std::string(63, 'n')));
  for (int i = 1; i < kCrowd; i += 50) {
    CHECK_FALSE(complains(log, "ns/good-" + std::to_string(i)));
  }
  check_lines(log);
}

void check_status(const World& world, const std::vector<Absurd>& cases) {
  std::size_t frontends = kCrowd + 1;
  for (const Absurd& absurd : cases) {
    frontends += absurd.works.size() + absurd.refuses.size() + absurd.node_ports;
  }
  const json status = world.settle();
  CHECK(status.at("frontends") == frontends);
  CHECK(status.at("setAside") == 0);  // by the kernel
  CHECK(status.at("conflicts") == 1);
}

// Events are sent at a measured pace.
bool has_event(const World& world, const std::string& name, const std::string& reason) {
  for (int i = 0; i < 100; ++i) {
    const json events = json::parse(world.admin("GET", "/apis/events.k8s.io/v1/events"));
    for (const json& event : events.at("items")) {
      if (event.at("regarding").value("name", "") == name && event.value("reason", "") == reason) {
        return true;
      }
    }
    std::this_thread::sleep_for(100ms);
  }
  return false;
}

void check_events(const World& world) {
  const std::vector<std::pair<const char*, const char*>> wanted{
      {"port-zero", "SetAside"},
      {"number-twice", "SetAside"},
      {"ip-of-good-0", "AddressConflict"},
      {"health-port-taken", "FailedToStartServiceHealthcheck"},
      {"address-garbage-4", "CannotRead"},
      {"edge-a", "CannotRead"},
      {"absurd", "CannotRead"}};
  for (const auto& [name, reason] : wanted) {
    INFO(name);
    CHECK(has_event(world, name, reason));
  }
}

// Chains that nobody leads to any more go some seconds later.
void check_same_at_last(const World& world, const TableListing& wanted) {
  for (int i = 0; i < 50 && !difference(wanted, list_table(world)).empty(); ++i) {
    std::this_thread::sleep_for(200ms);
  }
  check_same(wanted, list_table(world));
}

void apply_absurd(const World& world, const std::vector<Absurd>& cases) {
  std::vector<json> objects{absurd_node(), absurd_cidr()};
  for (const Absurd& absurd : cases) {
    objects.insert(objects.end(), absurd.objects.begin(), absurd.objects.end());
  }
  world.apply(objects, true);
  world.apply(longest_names(kLongestIp));
}

void mend(const World& world, const std::vector<Absurd>& cases) {
  std::vector<json> objects{good_node()};
  for (const Absurd& absurd : cases) {
    for (const json& object : mended(absurd)) {
      objects.push_back(object);
    }
  }
  world.apply(objects);
}

void remove_all(const World& world, const std::vector<Absurd>& cases) {
  remove(world, absurd_cidr());
  for (const json& object : longest_names(kLongestIp)) {
    remove(world, object);
  }
  for (const Absurd& absurd : cases) {
    for (const json& object : absurd.objects) {
      remove(world, object);
    }
  }
}

TEST_CASE("absurd objects among a thousand good Services lose only themselves") {
  SHUNT_NEEDS_ROOT();
  const bool protobuf = GENERATE(true, false);
  INFO((protobuf ? "protobuf" : "JSON"));
  World::Options options;
  if (!protobuf) {
    options.server_flags = {"--no-protobuf"};
  }
  World world(options);
  const Pods pods(world);
  world.apply(crowd());
  CHECK(world.settle().at("frontends") == kCrowd);
  const TableListing before = list_table(world);
  const std::vector<Absurd> cases = absurd_objects(!protobuf);

  // They come in the watches.
  apply_absurd(world, cases);
  check_status(world, cases);
  TableListing table = list_table(world);
  pods.check_crowd(table);
  check_absurd(cases, table, pods);
  check_longest(pods, table);
  CHECK(table.has("service-cidrs", "10.120.0.0/24"));
  world.on_node("nft list ruleset");
  const std::string log = world.daemon_log();
  check_named(cases, log);
  if (protobuf) {  // they take seconds, and are the same in both
    check_events(world);
  }
  CHECK(starts(world.daemon_log()) == 1);

  // They are there already, and come in the lists.
  world.kill_daemon();
  world.start_daemon();
  check_status(world, cases);
  check_same(table, list_table(world));
  check_named(cases, world.daemon_log().substr(log.size()));

  mend(world, cases);
  const json status = world.settle();
  CHECK(status.at("frontends") == kCrowd + 1 + cases.size());
  CHECK(status.at("conflicts") == 0);
  table = list_table(world);
  pods.check_crowd(table);
  for (const Absurd& absurd : cases) {
    INFO(absurd.name);
    CHECK(pods.ask(absurd.ip + ":80") == "10.64.0.4");
  }

  remove_all(world, cases);
  CHECK(starts(world.daemon_log()) == 2);
  CHECK(world.settle().at("frontends") == kCrowd);
  check_same_at_last(world, before);
  pods.check_crowd(list_table(world));
}

TEST_CASE("a Service that nobody can read any more stays as it was known") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.server_flags = {"--no-protobuf"};  // which can carry a text where a number belongs
  const World world(options);
  const Pods pods(world);
  world.apply({service("web", {"10.112.200.1"}), slice("web", "IPv4", {"10.64.0.4"})});
  world.settle();
  json odd = service("web", {"10.112.200.2"});
  odd["spec"]["ports"][0]["port"] = "80";
  world.apply({odd}, true);
  world.settle();
  CHECK(complains(world.daemon_log(), "ns/web", "spec.ports[0].port"));
  CHECK(pods.ask("10.112.200.1:80") == "10.64.0.4");
  world.apply({service("web", {"10.112.200.2"})});
  world.settle();
  CHECK(pods.ask("10.112.200.2:80") == "10.64.0.4");
  CHECK_FALSE(list_table(world).has("service-ips", "10.112.200.1 . tcp . 80"));
}

std::vector<json> malformed_frames(bool protobuf) {
  std::vector<json> out;
  if (protobuf) {
    for (const char* variant : {"garbage", "object", "length"}) {
      out.push_back({{"kind", "malformed-protobuf"}, {"variant", variant}});
    }
    return out;
  }
  for (const char* text :
       {"gopher",
        R"({"type":"ADDED","object":null})",
        R"({"type":"ADDED","object":{"metadata":{"name":"\ud800"}}})",
        R"({"type":"MODIFIED","object":{"kind":"Gopher","metadata":{"name":"good-1"}}})",
        R"({"type":"GOPHER","object":{"metadata":{"name":"good-1"}}})"}) {
    out.push_back({{"kind", "malformed-json"}, {"text", text}});
  }
  return out;
}

TEST_CASE("a frame that nobody can read costs a thousand Services nothing") {
  SHUNT_NEEDS_ROOT();
  const bool protobuf = GENERATE(true, false);
  INFO((protobuf ? "protobuf" : "JSON"));
  World::Options options;
  if (!protobuf) {
    options.server_flags = {"--no-protobuf"};
  }
  const World world(options);
  const Pods pods(world);
  world.apply(crowd());
  world.settle();
  const TableListing before = list_table(world);
  const std::vector<json> frames = malformed_frames(protobuf);
  const std::vector<std::string> resources{"services", "endpointslices", "nodes", "servicecidrs"};
  // A watch that failed waits longer each time, so there are few rounds, with another frame for
  // each watch.
  for (std::size_t round = 0; round < 2; ++round) {
    json faults = json::array();
    for (std::size_t i = 0; i < resources.size(); ++i) {
      json fault = frames[(i + round) % frames.size()];
      fault["match"] = {{"resource", resources[i]}, {"remaining", 1}};
      faults.push_back(std::move(fault));
    }
    INFO(faults.dump());
    const std::size_t said = world.daemon_log().size();
    world.set_faults(faults);
    world.apply({slice("good-0", "IPv4", {"10.64.0.4"})});
    world.settle();
    CHECK(pods.ask(crowd_ip(0) + ":80") == "10.64.0.4");
    const std::string log = world.daemon_log().substr(said);
    INFO(log);
    for (const std::string& resource : resources) {
      CHECK(complains(log, resource));
    }

    world.apply({slice("good-0", "IPv4", {crowd_pod(0)})});
    world.settle();
    check_same(before, list_table(world));
    pods.check_crowd(list_table(world));
  }
}

}  // namespace
}  // namespace shunt::test
