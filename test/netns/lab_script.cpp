#include "netns/lab_script.h"

#include <fmt/format.h>

#include <iterator>

namespace shunt::lab {
namespace {

using net::Family;
using net::IpAddress;

// The far ends of a link are reached through these, whatever addresses live there: a static
// neighbour each, on every link the same.
struct Side {
  std::string_view ipv4;
  std::string_view ipv6;
};
constexpr Side kNode{"169.254.0.1", "fe80::1"};
constexpr Side kFar{"169.254.0.2", "fe80::2"};

struct Link {
  std::string node_end;
  std::string far_end;
  std::string place;
  std::string node_mac;
  std::string far_mac;
};

std::string mac(std::size_t link, int side) {
  return fmt::format("02:00:00:{:02x}:{:02x}:{:02x}", link >> 8, link & 0xff, side);
}

Link uplink() { return {"uplink", "uplink", "outside", mac(0, 1), mac(0, 2)}; }

std::vector<std::string> pod_places(const LabSpec& spec) {
  std::vector<std::string> places;
  for (const PodSpec& pod : spec.pods) {
    places.push_back(pod.name);
  }
  if (!spec.shared_pods.empty()) {
    places.emplace_back("pods");
  }
  return places;
}

std::vector<Link> pod_links(const LabSpec& spec) {
  const bool bridge = spec.links == LabSpec::Links::Bridge;
  std::vector<Link> links;
  for (const std::string& place : pod_places(spec)) {
    const std::size_t n = links.size();
    const std::string node_end = (bridge ? "port" : spec.link_name) + std::to_string(n);
    // The members of a bridge speak to the bridge, whose address is that of link 255.
    links.push_back({node_end, "eth0", place, mac(bridge ? 255 : n + 1, 1), mac(n + 1, 2)});
  }
  return links;
}

std::string full_length(const IpAddress& ip) {
  return fmt::format("{}/{}", net::to_string(ip), ip.size() * 8);
}

std::string add_address(const IpAddress& ip, std::string_view device) {
  return fmt::format(
      "addr add {} dev {}{}\n", full_length(ip), device, ip.family == Family::IPv6 ? " nodad" : "");
}

std::string neighbours(const Side& side, std::string_view lladdr, std::string_view device) {
  std::string text;
  for (const std::string_view ip : {side.ipv4, side.ipv6}) {
    text += fmt::format("neigh replace {} lladdr {} dev {} nud permanent\n", ip, lladdr, device);
  }
  return text;
}

std::string route(
    std::string_view to,
    Family family,
    const Side& via,
    std::string_view device,
    std::string_view more) {
  return fmt::format(
      "route add {} via {} dev {} onlink {}\n",
      to,
      family == Family::IPv4 ? via.ipv4 : via.ipv6,
      device,
      more);
}

std::string default_routes(
    const Side& via, std::string_view device, const LabSpec& spec, bool node) {
  std::string text;
  for (const Family family : {Family::IPv4, Family::IPv6}) {
    std::string source;
    for (const IpAddress& ip : spec.node_addresses) {
      if (node && source.empty() && ip.family == family) {
        source = "src " + net::to_string(ip);
      }
    }
    text += route(family == Family::IPv4 ? "0.0.0.0/0" : "::/0", family, via, device, source);
  }
  return text;
}

// The range answers as if each of its addresses were configured (AnyIP).
std::string hold(const net::Cidr& range) {
  return fmt::format("route add local {} dev lo table local\n", net::to_string(range));
}

// The node's end of one pod link. With a bridge, `device` is the bridge for all of them.
std::string node_pod_link(const LabSpec& spec, const Link& link, std::string_view device) {
  std::string text;
  std::string_view ipv4 = kFar.ipv4;
  std::string_view ipv6 = kFar.ipv6;
  std::string own4;
  std::string own6;
  if (spec.links == LabSpec::Links::Bridge) {  // one device, so the far ends need names apart
    const std::string number = link.node_end.substr(4);
    own4 = "169.254.1." + number;
    own6 = "fe80::1:" + number;
    ipv4 = own4;
    ipv6 = own6;
  }
  const Side far{ipv4, ipv6};
  text += neighbours(far, link.far_mac, device);
  for (const PodSpec& pod : spec.pods) {
    for (const IpAddress& ip : pod.ips) {
      if (pod.name == link.place) {
        text += route(full_length(ip), ip.family, far, device, "");
      }
    }
  }
  for (const net::Cidr& range : spec.shared_pods) {
    if (link.place == "pods") {
      text += route(net::to_string(range), range.base.family, far, device, "");
    }
  }
  return text;
}

std::string node_script(const LabSpec& spec) {
  std::string text = "link set lo up\nlink set uplink up\n";
  for (const IpAddress& ip : spec.node_addresses) {
    text += add_address(ip, "uplink");
  }
  text += neighbours(kFar, uplink().far_mac, "uplink");
  const bool bridge = spec.links == LabSpec::Links::Bridge;
  const std::vector<Link> links = pod_links(spec);
  if (bridge) {
    text += fmt::format(
        "link add {0} address {1} type bridge\nlink set {0} up\n", spec.link_name, mac(255, 1));
    for (const IpAddress& ip : spec.node_pod_side) {
      text += add_address(ip, spec.link_name);
    }
  }
  for (const Link& link : links) {
    if (bridge) {
      text += fmt::format(
          "link set {0} master {1}\nlink set {0} type bridge_slave hairpin on\n",
          link.node_end,
          spec.link_name);
    }
    text += fmt::format("link set {} up\n", link.node_end);
    for (const IpAddress& ip : spec.node_pod_side) {
      text += bridge ? "" : add_address(ip, link.node_end);
    }
    text += node_pod_link(spec, link, bridge ? spec.link_name : link.node_end);
  }
  return text + default_routes(kFar, "uplink", spec, true);
}

std::string outside_script(const LabSpec& spec) {
  std::string text = "link set lo up\nlink set uplink up\n";
  text += neighbours(kNode, uplink().node_mac, "uplink");
  text += default_routes(kNode, "uplink", spec, false);
  for (const net::Cidr& range : spec.outside_hosts) {
    text += hold(range);
  }
  // Whatever else comes up the link ends here; what starts here still goes to the node.
  text +=
      "route add local 0.0.0.0/0 dev lo table 100\nroute add local ::/0 dev lo table 100\n"
      "rule add iif uplink lookup 100\nrule add from ::/0 iif uplink lookup 100\n";
  return text;
}

std::string pod_script(const LabSpec& spec, const Link& link) {
  std::string text = "link set lo up\nlink set eth0 up\n";
  text += neighbours(kNode, link.node_mac, "eth0");
  for (const PodSpec& pod : spec.pods) {
    for (const IpAddress& ip : pod.ips) {
      if (pod.name == link.place) {
        text += add_address(ip, "eth0");
      }
    }
  }
  if (link.place == "pods") {
    for (const net::Cidr& range : spec.shared_pods) {
      text += hold(range);
    }
    // The node's own address lies in the range, but not here.
    for (const IpAddress& ip : spec.node_pod_side) {
      text += route(full_length(ip), ip.family, kNode, "eth0", "table local");
    }
  }
  return text + default_routes(kNode, "eth0", spec, false);
}

}  // namespace

std::vector<std::string> places_of(const LabSpec& spec) {
  std::vector<std::string> places{"node", "outside"};
  const std::vector<std::string> pods = pod_places(spec);
  places.insert(places.end(), pods.begin(), pods.end());
  return places;
}

std::string link_script(const LabSpec& spec) {
  std::vector<Link> links = pod_links(spec);
  links.push_back(uplink());
  std::string text;
  for (const Link& link : links) {
    const bool port = spec.links == LabSpec::Links::Bridge && link.place != "outside";
    text += fmt::format(
        "link add name {} netns {}{} type veth peer name {} netns {} address {}\n",
        link.node_end,
        namespace_name(spec.owner, "node"),
        port ? "" : " address " + link.node_mac,
        link.far_end,
        namespace_name(spec.owner, link.place),
        link.far_mac);
  }
  return text;
}

std::vector<PlaceScript> place_scripts(const LabSpec& spec) {
  std::vector<PlaceScript> scripts{{"node", node_script(spec)}, {"outside", outside_script(spec)}};
  for (const Link& link : pod_links(spec)) {
    scripts.push_back({link.place, pod_script(spec, link)});
  }
  return scripts;
}

}  // namespace shunt::lab
