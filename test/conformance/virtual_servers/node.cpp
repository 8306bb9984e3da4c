#include "virtual_servers/node.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "netns/process.h"
#include "packet/agent_command.h"

namespace shunt::conformance::virtual_servers {
namespace {

using nlohmann::json;

constexpr const char* kDevice = "kube-ipvs0";

lab::Netns create(const char* place, const std::function<void()>& prepare) {
  return lab::Netns::create(
      lab::namespace_name(std::to_string(::getpid()) + "-servers", place), prepare);
}

// No address that the case does not name. An agent of both families has to be told that it is to be
// one of IPv4 only, or the other family's table would be its business as well; how a node says so:
// spec/config.md §6. Interfaces made from now on have IPv6 all the same.
void node_sysctls(bool speaks_ipv6) {
  lab::write_sysctl("net.ipv6.conf.default.addr_gen_mode", "1");
  lab::write_sysctl("net.ipv4.ip_forward", "1");
  lab::write_sysctl("net.ipv4.conf.all.rp_filter", "0");
  lab::write_sysctl("net.ipv4.conf.default.rp_filter", "0");
  if (!speaks_ipv6) {
    lab::write_sysctl("net.ipv6.conf.all.disable_ipv6", "1");
    lab::write_sysctl("net.ipv6.conf.default.disable_ipv6", "0");
    lab::write_sysctl("net.ipv6.conf.lo.disable_ipv6", "0");
  }
}

std::string add_address(const net::IpAddress& ip, const std::string& device) {
  const bool ipv6 = ip.family == net::Family::IPv6;
  return fmt::format(
      "addr replace {}/{} dev {}{}\n",
      net::to_string(ip),
      ip.size() * 8,
      device,
      ipv6 ? " nodad" : "");
}

}  // namespace

Node::Node(const Case& test_case)
    : node_(create("node", [&] { node_sysctls(test_case.settings.ipv6); })),
      neighbour_(create("neighbour", {})) {
  make_interfaces(test_case);
}

Node::~Node() {
  lab::remove_namespace(node_.name());
  lab::remove_namespace(neighbour_.name());
}

void Node::make_interfaces(const Case& test_case) const {
  std::string script = "link set lo up\n";
  for (const Interface& interface : test_case.interfaces) {
    if (interface.name != "lo") {
      script += fmt::format("link add {0} type dummy\nlink set {0} up\n", interface.name);
    }
    for (const net::IpAddress& ip : interface.addresses) {
      if (!net::is_loopback(ip)) {  // the kernel's own
        script += add_address(ip, interface.name);
      }
    }
  }
  run({"ip", "-batch", "-"}, script);
}

std::string Node::run(const std::vector<std::string>& command, const std::string& input) const {
  std::vector<std::string> words{"ip", "netns", "exec", node_.name()};
  words.insert(words.end(), command.begin(), command.end());
  return lab::run_program(words, input);
}

void Node::leave(const json& servers, const std::vector<net::IpAddress>& bound) const {
  if (!servers.empty()) {
    run({"ipvsadm", "-R"}, to_saved(servers));
  }
  if (this->servers() != servers) {
    throw std::runtime_error("what is to be found cannot be left: " + this->servers().dump());
  }
  if (!bound.empty()) {
    std::string script = fmt::format("link add {} type dummy\n", kDevice);
    for (const net::IpAddress& ip : bound) {
      script += add_address(ip, kDevice);
    }
    run({"ip", "-batch", "-"}, script);
  }
}

void Node::disturb(const Weight& weight) const {
  const json table{
      {to_string(weight.server), {{"reals", {{net::to_string(weight.real), weight.weight}}}}}};
  // "-A ...", then "-a ..." of the one real server, which becomes an edit.
  const std::string saved = to_saved(table);
  std::vector<std::string> command = packet::split_command(saved.substr(saved.find('\n') + 1));
  command.front() = "-e";
  command.insert(command.begin(), "ipvsadm");
  run(command);
}

json Node::servers() const { return parse_saved(run({"ipvsadm", "-Sn"})); }

std::vector<net::IpAddress> Node::bound(net::Family family) const {
  std::vector<net::IpAddress> out;
  for (const json& link : json::parse(run({"ip", "-j", "address", "show"}))) {
    if (link.value("ifname", "") != kDevice) {
      continue;
    }
    for (const json& entry : link.value("addr_info", json::array())) {
      const auto ip = net::parse_ip(entry.value("local", ""));
      if (ip && ip->family == family && entry.value("scope", "") != "link") {
        out.push_back(*ip);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace shunt::conformance::virtual_servers
