// What of ours the kernel has, as we believe it: the difference to what is wanted is the next
// document. Owned by the back end. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/iptables/document.h"
#include "backend/iptables/frame.h"
#include "backend/iptables/listing.h"
#include "backend/iptables/port_rules.h"

namespace shunt::backend::iptables {

struct PortId {
  std::string service;  // "ns/name:port"
  net::Protocol protocol = net::Protocol::Tcp;
  auto operator<=>(const PortId&) const = default;
};

// The part that does not follow Services.
struct Frame {
  std::map<ChainName, Rules> fixed;  // chains with all their rules
  std::set<ChainName> shared;        // chains that are there
  std::set<std::size_t> jumps;       // indices into jumps()
  Rules node_ports;                  // the end of KUBE-SERVICES in nat
  bool guard_chain = false;          // see Listing
  bool guard = false;
};

// Chains and rules of this mode that nobody wants.
struct Strays {
  std::set<ChainName> chains;
  std::vector<std::pair<ChainName, std::string>> rules;
};

class KernelRules {
 public:
  using Wanted = std::map<PortId, PortRules>;

  // Takes what a listing says for what the kernel has, and finds out whose it is by what is wanted.
  // `node_ports` null: not known yet, whatever is there stands.
  void take_in(Listing listing, const Wanted& wanted, const Rules* node_ports);

  const Frame& frame() const { return frame_; }
  std::size_t rules(Table table) const;           // of ours, in force
  const PortRules& port(const PortId& id) const;  // empty where there is nothing

  // Into the document: what makes the kernel's part the wanted one.
  void differ(const Frame& wanted, Document& document) const;
  void differ(const PortId& id, const PortRules& wanted, Document& document) const;
  void remove_strays(Document& document) const;

  // The kernel has taken it.
  void applied(Frame frame) { frame_ = std::move(frame); }
  void applied(const PortId& id, PortRules rules);
  void removed_strays() { strays_ = {}; }
  // That should have gone: it is empty, and somebody else's rule leads there.
  void keep(const ChainName& chain) { strays_.chains.insert(chain); }

  // What others did to ours. `words_differ`: this iptables prints rules in other words than ours,
  // so only their number can be compared.
  std::vector<Drift> compare(const Listing& listing, bool words_differ) const;

 private:
  void put(const PortId& id, PortRules rules);
  // All rules of shared chains, by chain.
  std::map<ChainName, std::multiset<std::string_view>> shared_rules() const;

  Frame frame_;
  Strays strays_;
  std::map<PortId, PortRules> ports_;
  std::array<std::size_t, 2> rules_of_ports_{};  // by table
};

}  // namespace shunt::backend::iptables
