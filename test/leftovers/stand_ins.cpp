#include "leftovers/stand_ins.h"

namespace shunt::test {
namespace {

// Fills the words with an @ of the texts below.
std::string of_family(std::string text, net::Family family) {
  const bool v4 = family == net::Family::IPv4;
  const auto put = [&](const std::string& word, const std::string& value) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size()) {
      text.replace(at, word.size(), value);
    }
  };
  put("@VIP", v4 ? "10.112.0.10" : "fdc0::10");
  put("@POD", v4 ? "10.64.0.1:8080" : "[fd64::1]:8080");
  put("@SET-", v4 ? "KUBE-" : "KUBE-6-");
  put("@INET", v4 ? "inet" : "inet6");
  put("@TYPE", v4 ? "ipv4_addr" : "ipv6_addr");
  put("@IP ", v4 ? "ip " : "ip6 ");
  return text;
}

constexpr char kNftTable[] = R"(
table @IP kube-proxy {
  comment "rules for kube-proxy"
  map service-ips {
    type @TYPE . inet_proto . inet_service : verdict
    elements = { @VIP . tcp . 80 : goto service-ABCDEFGH-default/web/tcp/http }
  }
  chain endpoint-IJKLMNOP-default/web/tcp/http__x {
    meta l4proto tcp dnat to @POD
  }
  chain service-ABCDEFGH-default/web/tcp/http {
    goto endpoint-IJKLMNOP-default/web/tcp/http__x
  }
  chain services {
    @IP daddr . meta l4proto . th dport vmap @service-ips
  }
  chain nat-prerouting {
    type nat hook prerouting priority dstnat; jump services
  }
  chain nat-output {
    type nat hook output priority -100; jump services
  }
}
)";

constexpr char kIptables[] = R"(*mangle
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-PROXY-CANARY - [0:0]
COMMIT
*filter
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SERVICES - [0:0]
:OTHERS - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A INPUT -j KUBE-FIREWALL
-A FORWARD -j OTHERS
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL -p tcp -m tcp --dport 9 -m comment --comment "kubelet's" -j DROP
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
-A OTHERS -p udp -m udp --dport 4789 -m comment --comment "an \"overlay\"" -j ACCEPT
COMMIT
*nat
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-SEP-IJKLMNOPIJKLMNOP - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-ABCDEFGHABCDEFGH - [0:0]
:OTHERS - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -p tcp -m tcp --dport 5080 -j OTHERS
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A POSTROUTING -p tcp -m tcp --dport 5081 -j MASQUERADE
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MASQUERADE --random-fully
-A KUBE-SEP-IJKLMNOPIJKLMNOP -p tcp -m tcp -j DNAT --to-destination @POD
-A KUBE-SERVICES -d @VIP -p tcp -m comment --comment "default/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-ABCDEFGHABCDEFGH
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-ABCDEFGHABCDEFGH -j KUBE-SEP-IJKLMNOPIJKLMNOP
-A OTHERS -p tcp -m tcp --dport 5080 -j DNAT --to-destination @POD
COMMIT
)";

constexpr char kIpvsSets[] = R"(create @SET-CLUSTER-IP hash:ip,port family @INET
create @SET-LOOP-BACK hash:ip,port,ip family @INET
create @SET-IPVS-IPS hash:ip family @INET
create other-@INET hash:ip family @INET
)";

constexpr char kIpvsRules[] = R"(*filter
:KUBE-FORWARD - [0:0]
:KUBE-IPVS-FILTER - [0:0]
:KUBE-IPVS-OUT-FILTER - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SOURCE-RANGES-FIREWALL - [0:0]
-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
-A INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT
-A FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER
-A KUBE-IPVS-FILTER -m set --match-set @SET-CLUSTER-IP dst,dst -j RETURN
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
COMMIT
*nat
:KUBE-LOAD-BALANCER - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
-A KUBE-POSTROUTING -m set --match-set @SET-LOOP-BACK dst,dst,src -j MASQUERADE
-A KUBE-SERVICES -m set --match-set @SET-CLUSTER-IP dst,dst -j ACCEPT
COMMIT
)";

}  // namespace

std::string nftables_mode() {
  return of_family(kNftTable, net::Family::IPv4) + of_family(kNftTable, net::Family::IPv6);
}

std::string iptables_mode(net::Family family) { return of_family(kIptables, family); }
std::string ipvs_sets(net::Family family) { return of_family(kIpvsSets, family); }
std::string ipvs_rules(net::Family family) { return of_family(kIpvsRules, family); }

}  // namespace shunt::test
