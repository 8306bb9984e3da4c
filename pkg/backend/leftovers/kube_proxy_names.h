// What kube-proxy calls its things in the kernel, in every mode it has (spec/config.md §9).
// Whatever is not named here belongs to somebody else: KUBE-FIREWALL and KUBE-KUBELET-CANARY are
// kubelet's.
#pragma once

#include <span>
#include <string_view>

namespace shunt::backend::leftovers {

inline constexpr char kNftTable[] = "kube-proxy";  // of ip and ip6
inline constexpr char kIpvsLink[] = "kube-ipvs0";

// The tables of iptables in which it has chains.
inline constexpr std::string_view kTables[] = {"nat", "filter", "mangle"};

// The chain in each of them by which its iptables mode sees that tables were flushed. kube-shunt
// has none.
inline constexpr std::string_view kCanary = "KUBE-PROXY-CANARY";

// Chains of the iptables mode and of the IPVS mode. `table` is one of kTables.
bool is_kube_proxy_chain(std::string_view table, std::string_view chain);

// Those of the iptables mode alone, without the canary: kube-shunt has the same in its own iptables
// mode.
bool is_iptables_mode_chain(std::string_view table, std::string_view chain);

// Sets of the IPVS mode, of both families.
bool is_kube_proxy_set(std::string_view name);

// Whether kube-proxy writes this jump into the built-in chain `from`: `rule` is what iptables-save
// prints of it after the name of that chain. Word for word: the same jump with another comment, or
// with one more match, is somebody else's.
bool is_kube_proxy_jump(std::string_view table, std::string_view from, std::string_view rule);

}  // namespace shunt::backend::leftovers
