#include "daemon/absurd_objects.h"

#include <utility>

#include "daemon/world.h"

namespace shunt::test {
namespace {

using nlohmann::json;

const std::string& megabyte() {
  static const std::string text(std::size_t{1} << 20U, '1');
  return text;
}

json port(const std::string& name, const json& number, const std::string& protocol = "TCP") {
  return {{"name", name}, {"port", number}, {"protocol", protocol}};
}

enum class Named { Nobody, Service, Slice };

// Collects the cases; each gets a Service with a slice, which `spoil` may do anything to.
class Collector {
 public:
  using Spoil = void (*)(json& service, json& slice);

  // "@" in a frontend is the ClusterIP; "*" in front of a port a NodePort; "!" in front of all: it
  // refuses.
  void add(
      const std::string& name,
      Named named,
      const std::vector<std::string>& frontends,
      Spoil spoil) {
    Absurd absurd;
    absurd.name = name;
    absurd.ip = "10.112.200." + std::to_string(cases_.size() + 1);
    absurd.objects = {service(name, {absurd.ip}), slice(name, "IPv4", {"10.64.0.4"})};
    spoil(absurd.objects[0], absurd.objects[1]);
    for (std::string frontend : frontends) {
      if (frontend.starts_with('*')) {
        ++absurd.node_ports;
        continue;
      }
      const bool refuses = frontend.starts_with('!');
      frontend.erase(0, refuses ? 1 : 0);
      if (frontend.starts_with('@')) {
        frontend.replace(0, 1, absurd.ip);
      }
      (refuses ? absurd.refuses : absurd.works).push_back(frontend);
    }
    absurd.named = named == Named::Nobody    ? ""
                   : named == Named::Service ? "ns/" + name
                                             : "ns/" + name + "-4";
    cases_.push_back(std::move(absurd));
  }
  Absurd& last() { return cases_.back(); }
  std::vector<Absurd> take() { return std::move(cases_); }

 private:
  std::vector<Absurd> cases_;
};

// A second port "q" with this number.
template <int kNumber>
void with_port(json& service, json&) {
  service["spec"]["ports"].push_back(port("q", kNumber));
}
template <int kNumber>
void with_node_port(json& service, json&) {
  service["spec"]["type"] = "NodePort";
  service["spec"]["ports"][0]["nodePort"] = kNumber;
}
template <int kSeconds>
void with_affinity(json& service, json&) {
  service["spec"]["sessionAffinity"] = "ClientIP";
  service["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] = kSeconds;
}
template <int kPort>
void with_health_port(json& service, json&) {
  service["spec"]["type"] = "LoadBalancer";
  service["spec"]["externalTrafficPolicy"] = "Local";
  service["spec"]["healthCheckNodePort"] = kPort;
}
void set_cluster_ip(json& service, const std::string& text) {
  service["spec"]["clusterIP"] = text;
  service["spec"]["clusterIPs"] = json::array({text});
}

void add_ports(Collector& cases) {
  std::vector<std::string> thousand;
  for (int i = 1; i <= 1000; ++i) {
    thousand.push_back("@:" + std::to_string(i));
  }
  cases.add("thousand-ports", Named::Nobody, thousand, [](json& service, json& slice) {
    service["spec"]["ports"] = json::array();
    slice["ports"] = json::array();
    for (int i = 1; i <= 1000; ++i) {
      service["spec"]["ports"].push_back(port("p" + std::to_string(i), i));
      slice["ports"].push_back(port("p" + std::to_string(i), 8080));
    }
  });
  cases.add("number-twice", Named::Service, {"@:80"}, &with_port<80>);
  cases.add("name-twice", Named::Service, {"@:81"}, [](json& service, json&) {
    service["spec"]["ports"].push_back(port("p", 81));
  });
  cases.add("port-zero", Named::Service, {"@:80"}, &with_port<0>);
  cases.add("port-negative", Named::Service, {"@:80"}, &with_port<-1>);
  cases.add("port-65536", Named::Service, {"@:80"}, &with_port<65536>);
  cases.add("protocol-gopher", Named::Service, {"@:80"}, [](json& service, json&) {
    service["spec"]["ports"].push_back(port("q", 81, "GOPHER"));
  });
  cases.add("node-port-huge", Named::Service, {"@:80"}, &with_node_port<70000>);
  cases.add("node-port-negative", Named::Service, {"@:80"}, &with_node_port<-1>);
  cases.add(
      "node-port-twice", Named::Service, {"@:80", "!@:81", "*:30090"}, [](json& service, json&) {
        service["spec"]["type"] = "NodePort";
        service["spec"]["ports"] = {port("p", 80), port("q", 81)};
        service["spec"]["ports"][0]["nodePort"] = 30090;
        service["spec"]["ports"][1]["nodePort"] = 30090;
      });
}

void add_addresses(Collector& cases) {
  cases.add("ip-of-other-family", Named::Service, {}, [](json& service, json&) {
    set_cluster_ip(service, "fdc0::99");
  });
  cases.add("ip-garbage", Named::Service, {}, [](json& service, json&) {
    set_cluster_ip(service, "gopher");
  });
  cases.add("ip-zero", Named::Service, {}, [](json& service, json&) {
    set_cluster_ip(service, "0.0.0.0");
  });
  cases.add("ip-megabyte", Named::Service, {}, [](json& service, json&) {
    set_cluster_ip(service, megabyte());
  });
  cases.add("ip-forges-a-line", Named::Service, {}, [](json& service, json&) {
    set_cluster_ip(service, "10.0.0.1\nts=0 level=error msg=forged \xe2\x82\xac\x1b[31m");
  });
  cases.add("ip-of-good-0", Named::Service, {}, [](json& service, json&) {
    set_cluster_ip(service, "10.112.0.1");
    service["metadata"]["creationTimestamp"] = "2037-01-01T00:00:00Z";  // the younger
  });
  std::vector<std::string> frontends{"@:80"};
  for (int i = 0; i < 100; ++i) {
    if (i % 3 != 0) {
      frontends.push_back("203.0.113." + std::to_string(100 + i) + ":80");
    }
  }
  cases.add("external-ips-garbage", Named::Service, frontends, [](json& service, json&) {
    for (int i = 0; i < 100; ++i) {
      const std::string text = std::to_string(100 + i);
      service["spec"]["externalIPs"].push_back(i % 3 == 0 ? "gopher" + text : "203.0.113." + text);
    }
  });
  cases.add(
      "source-ranges-garbage",
      Named::Service,
      {"@:80", "192.0.2.201:80"},
      [](json& service, json&) {
        service["spec"]["type"] = "LoadBalancer";
        service["spec"]["loadBalancerSourceRanges"] = {"198.51.100.0/24", "gopher", "10.0.0.0/99"};
        service["status"]["loadBalancer"]["ingress"] = {{{"ip", "192.0.2.201"}}};
      });
}

void add_settings(Collector& cases) {
  cases.add("affinity-negative", Named::Service, {"@:80"}, &with_affinity<-5>);
  cases.add("affinity-huge", Named::Nobody, {"@:80"}, &with_affinity<2147483647>);
  cases.add("affinity-gopher", Named::Service, {"@:80"}, [](json& service, json&) {
    service["spec"]["sessionAffinity"] = "Gopher";
  });
  cases.add("health-port-taken", Named::Service, {"@:80"}, &with_health_port<10256>);
  cases.add("health-port-negative", Named::Service, {"@:80"}, &with_health_port<-1>);
  cases.add("type-gopher", Named::Nobody, {"@:80"}, [](json& service, json&) {
    service["spec"]["type"] = "Gopher";
  });
  cases.add("policies-gopher", Named::Nobody, {"@:80"}, [](json& service, json&) {
    service["spec"]["externalTrafficPolicy"] = "Gopher";
    service["spec"]["internalTrafficPolicy"] = "Gopher";
  });
  cases.add("megabytes-beside", Named::Nobody, {"@:80"}, [](json& service, json& slice) {
    for (json* metadata : {&service["metadata"], &slice["metadata"]}) {
      (*metadata)["labels"]["much"] = megabyte();
      (*metadata)["annotations"]["much"] = megabyte();
    }
  });
  // As of a Service that has not got its address yet: there is nothing to lose.
  cases.add(
      "spec-null", Named::Nobody, {}, [](json& service, json&) { service["spec"] = nullptr; });
  cases.add("ports-null", Named::Nobody, {}, [](json& service, json&) {
    service["spec"]["ports"] = nullptr;
  });
}

void add_slices(Collector& cases) {
  cases.add("five-thousand-addresses", Named::Nobody, {"@:80"}, [](json&, json& slice) {
    slice["endpoints"] = json::array();
    for (int i = 0; i < 5000; ++i) {
      const std::string ip = "10.65." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250);
      slice["endpoints"].push_back({{"addresses", {ip}}, {"conditions", {{"ready", true}}}});
    }
  });
  cases.add("address-of-other-family", Named::Slice, {"@:80"}, [](json&, json& slice) {
    slice["endpoints"].push_back({{"addresses", {"fd64::4"}}});
  });
  cases.add("address-garbage", Named::Slice, {"@:80"}, [](json&, json& slice) {
    slice["endpoints"].push_back({{"addresses", {"gopher"}}});
  });
  cases.add("no-addresses", Named::Slice, {"@:80"}, [](json&, json& slice) {
    slice["endpoints"].push_back({{"addresses", json::array()}});
  });
  cases.add("address-type-gopher", Named::Slice, {"!@:80"}, [](json&, json& slice) {
    slice["addressType"] = "Gopher";
  });
  cases.add("slice-ports", Named::Slice, {"@:80"}, [](json&, json& slice) {
    for (const int number : {0, -1, 65536}) {
      slice["ports"].push_back(port("q" + std::to_string(number), number));
    }
    slice["ports"].push_back(port("g", 81, "GOPHER"));
    slice["ports"].push_back({{"port", 82}});
  });
  cases.add("hints-garbage", Named::Nobody, {"@:80"}, [](json&, json& slice) {
    json& hints = slice["endpoints"][0]["hints"];
    hints["forZones"] = {{{"name", ""}}, {{"name", "\x01"}}, {{"name", megabyte()}}};
    for (int i = 0; i < 1000; ++i) {
      hints["forNodes"].push_back({{"name", "edge-" + std::to_string(i)}});
    }
  });
  cases.add("endpoint-in-two-slices", Named::Nobody, {"@:80"}, [](json&, json&) {});
  json again = cases.last().objects[1];
  again["metadata"]["name"] = "endpoint-in-two-slices-again";
  cases.last().objects.push_back(again);
  cases.add("slice-of-nobody", Named::Nobody, {"!@:80"}, [](json&, json& slice) {
    slice["metadata"]["labels"]["kubernetes.io/service-name"] = "nobody";
  });
  cases.add("slice-of-a-megabyte", Named::Nobody, {"!@:80"}, [](json&, json& slice) {
    slice["metadata"]["labels"]["kubernetes.io/service-name"] = megabyte();
  });
}

// An object with a value of a wrong type cannot be read, and is lost whole.
void add_wrong_types(Collector& cases) {
  cases.add("port-is-1e30", Named::Service, {}, [](json& service, json&) {
    service["spec"]["ports"].push_back(port("q", 1e30));
  });
  cases.add("port-is-2-to-the-31", Named::Service, {}, [](json& service, json&) {
    service["spec"]["ports"].push_back(port("q", 2147483648));
  });
  cases.add("port-is-text", Named::Service, {}, [](json& service, json&) {
    service["spec"]["ports"].push_back(port("q", "81"));
  });
  cases.add("port-is-null", Named::Service, {"@:80"}, [](json& service, json&) {
    service["spec"]["ports"].push_back(nullptr);  // an empty one, as Go takes it
  });
  cases.add("ports-are-an-object", Named::Service, {}, [](json& service, json&) {
    service["spec"]["ports"] = json::object();
  });
  cases.add(
      "spec-is-text", Named::Service, {}, [](json& service, json&) { service["spec"] = "gopher"; });
  cases.add("labels-are-a-number", Named::Service, {}, [](json& service, json&) {
    service["metadata"]["labels"] = 7;
  });
  cases.add("external-ips-are-numbers", Named::Service, {}, [](json& service, json&) {
    service["spec"]["externalIPs"] = {1, 2};
  });
  cases.add("condition-is-text", Named::Slice, {"!@:80"}, [](json&, json& slice) {
    slice["endpoints"][0]["conditions"]["ready"] = "yes";
  });
  cases.add("hints-are-text", Named::Slice, {"!@:80"}, [](json&, json& slice) {
    slice["endpoints"][0]["hints"]["forZones"] = "gopher";
  });
  cases.add("endpoint-is-text", Named::Slice, {"!@:80"}, [](json&, json& slice) {
    slice["endpoints"].push_back("10.64.0.3");
  });
}

}  // namespace

std::vector<Absurd> absurd_objects(bool with_json) {
  Collector cases;
  add_ports(cases);
  add_addresses(cases);
  add_settings(cases);
  add_slices(cases);
  if (with_json) {
    add_wrong_types(cases);
  }
  return cases.take();
}

std::vector<json> mended(const Absurd& absurd) {
  return {service(absurd.name, {absurd.ip}), slice(absurd.name, "IPv4", {"10.64.0.4"})};
}

std::vector<json> longest_names(const std::string& ip) {
  const std::string name(63, 'n');
  const std::string port_name(15, 'p');
  json long_service = service(name, {ip});
  json long_slice = slice(name, "IPv4", {"10.64.0.4"});
  for (json* object : {&long_service, &long_slice}) {
    (*object)["metadata"]["namespace"] = name;
  }
  long_service["spec"]["ports"][0]["name"] = port_name;
  long_slice["ports"][0]["name"] = port_name;
  return {long_service, long_slice};
}

}  // namespace shunt::test
