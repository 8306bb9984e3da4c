// Writes expressions the way nft does for one family: which registers a concatenation uses depends
// on the size of an address (spec/nftables.md §8). What nft would not write itself, it cannot print
// either. Pure.
#pragma once

#include <string>
#include <vector>

#include "backend/nft/ruleset.h"
#include "net/ip_address.h"
#include "net/socket_address.h"

namespace shunt::backend::nft {

using Expressions = std::vector<Expression>;
Expressions operator+(Expressions left, const Expressions& right);

class RuleWriter {
 public:
  explicit RuleWriter(net::Family family) : v6_(family == net::Family::IPv6) {}

  Expression destination(std::uint32_t reg) const;
  Expression source(std::uint32_t reg) const;

  // Keys of lookups and updates, in registers from 1 on.
  Expressions frontend() const;         // daddr . l4proto . dport
  Expressions node_port() const;        // l4proto . dport
  Expressions frontend_source() const;  // daddr . l4proto . dport . saddr
  Expressions sender_pair() const;      // saddr . saddr . l4proto . dport
  Expressions packet_pair() const;      // saddr . daddr . l4proto . dport
  Expressions sender() const;           // saddr . l4proto . sport
  // The same of the connection as it was before NAT, and of the endpoint that NAT chose.
  Expressions original_frontend() const;
  Expressions original_node_port() const;
  Expressions original_destination() const;
  Expressions answering_endpoint() const;          // reply saddr . l4proto . reply sport
  Expressions answering_endpoint_as_data() const;  // reply saddr . sport, from kDataRegister on

  std::uint32_t after_frontend() const { return v6_ ? 14 : 11; }
  static std::uint32_t after_node_port() { return 10; }
  // Where an update has its data when its key is one address.
  static constexpr std::uint32_t kDataRegister = 2;
  // Where a map's address . port has its port when the address is in register 1.
  std::uint32_t port_of_nat() const { return v6_ ? 2 : 9; }

 private:
  Expressions concatenated(Expression address, Expression port_at(std::uint32_t)) const;
  bool v6_;
};

Expressions protocol_is(net::Protocol protocol);
Expressions ct_state_new();
Expressions ct_state_invalid();
Expressions ct_status_dnat();
Expressions ct_direction_reply();
Expressions bits_set(Expression load, std::uint32_t bits);
Expressions is_local_address(LoadAddressType::Of of);

Expression jump(std::string chain);
Expression go_to(std::string chain);
Expression drop();
Expression member(std::string set, bool invert = false);
Expression verdict_of(std::string map);

}  // namespace shunt::backend::nft
