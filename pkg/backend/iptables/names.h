// The names of our chains: kube-proxy's, letter by letter, so that tools and habits go on working
// (spec/iptables.md §4). Pure.
#pragma once

#include <string>
#include <string_view>

#include "net/socket_address.h"

namespace shunt::backend::iptables {

// Chains that all Services share. Those of both tables have one name in both.
inline constexpr char kServices[] = "KUBE-SERVICES";
inline constexpr char kNodePorts[] = "KUBE-NODEPORTS";
inline constexpr char kExternalServices[] = "KUBE-EXTERNAL-SERVICES";  // filter
inline constexpr char kForward[] = "KUBE-FORWARD";                     // filter
inline constexpr char kFirewall[] = "KUBE-PROXY-FIREWALL";             // filter
inline constexpr char kGuard[] = "KUBE-FIREWALL";            // filter; the kubelet's as well
inline constexpr char kPostrouting[] = "KUBE-POSTROUTING";   // nat
inline constexpr char kMarkMasquerade[] = "KUBE-MARK-MASQ";  // nat

enum class PortChain { Cluster, Local, External, Firewall };

// `service_port` is "ns/name:port", or "ns/name" for a port without a name.
std::string chain_of_port(PortChain kind, std::string_view service_port, net::Protocol protocol);
std::string chain_of_endpoint(
    std::string_view service_port, net::Protocol protocol, const net::SocketAddress& endpoint);

std::string_view word(net::Protocol protocol);  // "tcp"

}  // namespace shunt::backend::iptables
