#include "daemon/iptables_world.h"

#include <cstdlib>

namespace shunt::test {

std::optional<std::string> why_no_iptables(const std::string& variant) {
  const std::string command = "unshare -n iptables-" + variant + " -t nat -S >/dev/null 2>&1";
  return std::system(command.c_str()) == 0
             ? std::nullopt
             : std::optional("iptables-" + variant + " does not work on this kernel");
}

std::string foreign_rules(const World& world, const std::string& variant) {
  return world.on_node(
      "for t in mangle filter nat; do iptables-" + variant +
      "-save -t $t | sed -E '/^#/d; s/ \\[[0-9]+:[0-9]+\\]//'; done | grep -vE "
      "'KUBE-(SERVICES|EXTERNAL-SERVICES|NODEPORTS|PROXY-FIREWALL|FORWARD|POSTROUTING|MARK-MASQ|"
      "SVC-"
      "|SVL-|EXT-|FW-|SEP-)'");
}

std::string kubelet_rules() {
  return R"(*mangle
:KUBE-IPTABLES-HINT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*filter
:CNI-FORWARD - [0:0]
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A OUTPUT -j KUBE-FIREWALL
-A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
-A CNI-FORWARD -s 10.64.0.0/16 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
)";
}

std::string plugin_rules() {
  return R"(*nat
:CNI-0a1b2c - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -s 10.64.0.9/32 -m comment --comment "name: \"bridge\" id: \"0a1b2c\"" -j CNI-0a1b2c
-A CNI-0a1b2c -d 10.64.0.0/14 -j ACCEPT
-A CNI-0a1b2c ! -d 224.0.0.0/4 -j MASQUERADE
-A CNI-HOSTPORT-DNAT -p tcp -m tcp --dport 8081 -j DNAT --to-destination 10.64.0.1:8080
COMMIT
)";
}

void restore_rules(const World& world, const std::string& variant, const std::string& rules) {
  world.on_node("iptables-" + variant + "-restore --wait 5 --noflush <<'END'\n" + rules + "END\n");
}

}  // namespace shunt::test
