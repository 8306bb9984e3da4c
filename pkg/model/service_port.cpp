#include "model/service_port.h"

#include <algorithm>
#include <map>

#include "base/trimmed.h"

namespace shunt::model {
namespace {

constexpr std::chrono::seconds kDefaultAffinity{10800};

// As kube-proxy trims source ranges; addresses are not trimmed.
constexpr std::string_view kBlank = " \t\n\v\f\r";

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <typename T>
void push_new(std::vector<T>& values, const T& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    values.push_back(value);
  }
}

// The text of the cluster IP of a family; "" when there is none.
std::string_view cluster_ip_text(const kube::Service& service, net::Family family) {
  if (service.ip_families.empty()) {  // an API server from before dual stack
    return service.cluster_ip;
  }
  for (std::size_t i = 0; i < service.ip_families.size() && i < service.cluster_ips.size(); ++i) {
    if (service.ip_families[i] == net::to_string(family)) {
      return service.cluster_ips[i];
    }
  }
  return {};
}

std::optional<Skip> skip_of_any_family(const kube::Service& service) {
  if (service.has_proxy_name_label) {
    return Skip::OtherProxy;
  }
  if (service.cluster_ip == "None") {
    return Skip::Headless;
  }
  if (service.cluster_ip.empty()) {
    return Skip::NoClusterIp;
  }
  if (service.type == "ExternalName") {
    return Skip::ExternalName;
  }
  return std::nullopt;
}

// Reads one Service for one family, step by step; what is odd goes to `issues`.
class Reader {
 public:
  Reader(const kube::Service& service, net::Family family, std::vector<std::string>& issues)
      : service_(service), family_(family), issues_(issues) {}

  std::optional<net::IpAddress> cluster_ip() {
    const std::string_view text = cluster_ip_text(service_, family_);
    const auto ip = net::parse_ip(text);
    if (ip && ip->family == family_) {
      return ip;
    }
    const bool of_other_family = ip && service_.ip_families.empty();
    if (!text.empty() && !of_other_family) {
      issue(
          "cluster IP " + quoted(text) + " is no " + std::string(net::to_string(family_)) +
          " address");
    }
    return std::nullopt;
  }

  // Everything that the ports of a Service share.
  ServicePort shared_part(const net::IpAddress& cluster_ip) {
    ServicePort port;
    port.name.service = service_.meta.key;
    port.cluster_ip = cluster_ip;
    port.external_ips = external_ips();
    port.load_balancer_vips = load_balancer_vips();
    port.source_ranges = source_ranges();
    port.affinity = affinity();
    port.external_local = external_local();
    port.internal_local = service_.internal_traffic_policy == "Local";
    port.health_check_node_port = health_check_node_port(port.external_local);
    port.ipvs = ipvs_annotations(service_, issues_);
    return port;
  }

  std::optional<ServicePort> port(const ServicePort& shared, const kube::ServicePortSpec& spec) {
    const auto protocol =
        spec.protocol.empty() ? net::Protocol::Tcp : net::parse_protocol(spec.protocol);
    const std::string who = "port " + quoted(spec.name) + ": ";
    if (!protocol) {
      issue(who + "unknown protocol " + quoted(spec.protocol));
      return std::nullopt;
    }
    if (!is_port(spec.port)) {
      issue(who + "number " + std::to_string(spec.port) + " is out of range");
      return std::nullopt;
    }
    ServicePort port = shared;
    port.name.port = spec.name;
    port.name.protocol = *protocol;
    port.port = net::Port{static_cast<std::uint16_t>(spec.port)};
    if (is_port(spec.node_port)) {
      port.node_port = net::Port{static_cast<std::uint16_t>(spec.node_port)};
    } else if (spec.node_port != 0) {
      issue(who + "node port " + std::to_string(spec.node_port) + " is out of range");
    }
    return port;
  }

  void issue(std::string what) { issues_.push_back(std::move(what)); }

 private:
  static bool is_port(std::int32_t number) { return number >= 1 && number <= 65535; }

  void add_ip(std::vector<net::IpAddress>& ips, std::string_view text, std::string_view field) {
    const auto ip = net::parse_ip(text);
    if (ip && ip->family == family_) {
      push_new(ips, *ip);
    } else if (!ip && !trimmed(text, kBlank).empty()) {
      issue(std::string(field) + ": " + quoted(text) + " is no IP address");
    }
  }

  std::vector<net::IpAddress> external_ips() {
    std::vector<net::IpAddress> ips;
    for (const std::string& text : service_.external_ips) {
      add_ip(ips, text, "externalIPs");
    }
    return ips;
  }

  std::vector<net::IpAddress> load_balancer_vips() {
    std::vector<net::IpAddress> ips;
    for (const kube::LoadBalancerIngress& ingress : service_.ingress) {
      if (!ingress.ip_mode || *ingress.ip_mode == "VIP") {
        add_ip(ips, ingress.ip, "loadBalancer.ingress");
      }
    }
    return ips;
  }

  // An empty list means anybody, also when every entry was invalid or of the other family: that
  // traffic is then not restricted (spec/semantics.md §3).
  std::vector<net::Cidr> source_ranges() {
    std::vector<net::Cidr> ranges;
    for (const std::string& text : service_.load_balancer_source_ranges) {
      const std::string_view entry = trimmed(text, kBlank);
      const auto range = net::parse_cidr(entry);
      if (range && range->base.family == family_) {
        push_new(ranges, *range);
      } else if (!range && !entry.empty()) {
        issue("loadBalancerSourceRanges: " + quoted(text) + " is no prefix");
      }
    }
    const auto is_everything = [](const net::Cidr& range) { return range.prefix_length == 0; };
    if (std::any_of(ranges.begin(), ranges.end(), is_everything)) {
      ranges.clear();
    }
    return ranges;
  }

  std::optional<std::chrono::seconds> affinity() {
    if (service_.session_affinity != "ClientIP") {
      if (!service_.session_affinity.empty() && service_.session_affinity != "None") {
        issue("unknown sessionAffinity " + quoted(service_.session_affinity));
      }
      return std::nullopt;
    }
    if (!service_.client_ip_timeout_seconds) {
      return kDefaultAffinity;
    }
    if (*service_.client_ip_timeout_seconds <= 0) {
      issue(
          "affinity timeout " + std::to_string(*service_.client_ip_timeout_seconds) +
          " s is not positive");
      return kDefaultAffinity;
    }
    return std::chrono::seconds(*service_.client_ip_timeout_seconds);
  }

  // Policy Local counts only where the type lets traffic in from outside. Whether this family has
  // an external address at all is another question: externally_accessible().
  bool external_local() const {
    if (service_.external_traffic_policy != "Local") {
      return false;
    }
    if (service_.type == "LoadBalancer" || service_.type == "NodePort") {
      return true;
    }
    return (service_.type == "ClusterIP" || service_.type.empty()) &&
           !service_.external_ips.empty();
  }

  net::Port health_check_node_port(bool external_local) {
    if (service_.type != "LoadBalancer" || !external_local) {
      return {};
    }
    if (!is_port(service_.health_check_node_port)) {
      issue(
          "healthCheckNodePort " + std::to_string(service_.health_check_node_port) +
          " is no port, although externalTrafficPolicy is Local");
      return {};
    }
    return net::Port{static_cast<std::uint16_t>(service_.health_check_node_port)};
  }

  const kube::Service& service_;
  net::Family family_;
  std::vector<std::string>& issues_;
};

}  // namespace

std::string to_string(const ServicePortName& name) {
  return kube::to_string(name.service) + ":" + name.port + "/" +
         std::string(net::to_string(name.protocol));
}

std::string display_name(const ServicePortName& name) {
  const std::string service = kube::to_string(name.service);
  return name.port.empty() ? service : service + ":" + name.port;
}

std::string_view to_string(Skip skip) {
  switch (skip) {
    case Skip::Headless:
      return "headless";
    case Skip::NoClusterIp:
      return "no-cluster-ip";
    case Skip::ExternalName:
      return "external-name";
    case Skip::OtherProxy:
      return "other-proxy";
    case Skip::NoAddressInFamily:
      return "no-address-in-family";
  }
  return "?";
}

ServicePorts service_ports(const kube::Service& service, net::Family family) {
  ServicePorts result;
  result.skipped = skip_of_any_family(service);
  if (result.skipped) {
    return result;
  }
  Reader reader(service, family, result.issues);
  const auto cluster_ip = reader.cluster_ip();
  if (!cluster_ip) {
    result.skipped = Skip::NoAddressInFamily;
    return result;
  }
  const ServicePort shared = reader.shared_part(*cluster_ip);
  std::map<ServicePortName, ServicePort> by_name;
  for (const kube::ServicePortSpec& spec : service.ports) {
    auto port = reader.port(shared, spec);
    if (!port) {
      continue;
    }
    const bool is_new = by_name.insert_or_assign(port->name, *port).second;
    if (!is_new) {
      reader.issue(
          "port " + quoted(spec.name) + ": given twice for one protocol, the later one counts");
    }
  }
  result.ports.reserve(by_name.size());
  for (auto& [name, port] : by_name) {
    result.ports.push_back(std::move(port));
  }
  return result;
}

}  // namespace shunt::model
