#include "backend/nft/rule_writer.h"

#include <utility>

namespace shunt::backend::nft {
namespace {

constexpr std::uint32_t kCtStateInvalid = 0x1;  // NF_CT_STATE_INVALID_BIT
constexpr std::uint32_t kCtStateNew = 0x8;      // NF_CT_STATE_BIT(IP_CT_NEW)
constexpr std::uint32_t kCtStatusDnat = 0x20;   // IPS_DST_NAT
constexpr std::uint8_t kCtDirectionReply = 1;   // IP_CT_DIR_REPLY
constexpr std::uint8_t kTypeLocal = 2;          // RTN_LOCAL

Expression dport(std::uint32_t reg) { return LoadPayload{LoadPayload::Base::Transport, 2, 2, reg}; }
Expression sport(std::uint32_t reg) { return LoadPayload{LoadPayload::Base::Transport, 0, 2, reg}; }
Expression original_port(std::uint32_t reg) { return LoadCt{LoadCt::Key::OriginalPort, reg}; }
Expression reply_port(std::uint32_t reg) { return LoadCt{LoadCt::Key::ReplyPort, reg}; }
Expression l4proto(std::uint32_t reg) { return LoadMeta{LoadMeta::Key::L4Proto, reg}; }

}  // namespace

Expressions operator+(Expressions left, const Expressions& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Expression RuleWriter::destination(std::uint32_t reg) const {
  return LoadPayload{LoadPayload::Base::Network, v6_ ? 24U : 16U, v6_ ? 16U : 4U, reg};
}
Expression RuleWriter::source(std::uint32_t reg) const {
  return LoadPayload{LoadPayload::Base::Network, v6_ ? 8U : 12U, v6_ ? 16U : 4U, reg};
}

// address . l4proto . port, the address in register 1.
Expressions RuleWriter::concatenated(Expression address, Expression port_at(std::uint32_t)) const {
  return {std::move(address), l4proto(v6_ ? 2 : 9), port_at(v6_ ? 13 : 10)};
}

Expressions RuleWriter::frontend() const { return concatenated(destination(1), dport); }
Expressions RuleWriter::sender() const { return concatenated(source(1), sport); }
Expressions RuleWriter::node_port() const { return {l4proto(1), dport(9)}; }
Expressions RuleWriter::frontend_source() const {
  return frontend() + Expressions{source(after_frontend())};
}
Expressions RuleWriter::sender_pair() const {
  return {source(1), source(v6_ ? 2 : 9), l4proto(v6_ ? 3 : 10), dport(v6_ ? 17 : 11)};
}
Expressions RuleWriter::packet_pair() const {
  return {source(1), destination(v6_ ? 2 : 9), l4proto(v6_ ? 3 : 10), dport(v6_ ? 17 : 11)};
}
Expressions RuleWriter::original_destination() const {
  return {LoadCt{LoadCt::Key::OriginalDestination, 1}};
}
Expressions RuleWriter::original_frontend() const {
  return concatenated(LoadCt{LoadCt::Key::OriginalDestination, 1}, original_port);
}
Expressions RuleWriter::original_node_port() const { return {l4proto(1), original_port(9)}; }
Expressions RuleWriter::answering_endpoint() const {
  return concatenated(LoadCt{LoadCt::Key::ReplySource, 1}, reply_port);
}
Expressions RuleWriter::answering_endpoint_as_data() const {
  return {LoadCt{LoadCt::Key::ReplySource, kDataRegister}, reply_port(v6_ ? 3 : 13)};
}

Expressions bits_set(Expression load, std::uint32_t bits) {
  return {std::move(load), Bitwise{1, bits, 0}, Compare{Compare::Op::NotEqual, 1, {0, 0, 0, 0}}};
}
Expressions ct_state_new() { return bits_set(LoadCt{LoadCt::Key::State, 1}, kCtStateNew); }
Expressions ct_state_invalid() { return bits_set(LoadCt{LoadCt::Key::State, 1}, kCtStateInvalid); }
Expressions ct_status_dnat() { return bits_set(LoadCt{LoadCt::Key::Status, 1}, kCtStatusDnat); }

Expressions ct_direction_reply() {
  return {LoadCt{LoadCt::Key::Direction, 1}, Compare{Compare::Op::Equal, 1, {kCtDirectionReply}}};
}

Expressions protocol_is(net::Protocol protocol) {
  return {l4proto(1), Compare{Compare::Op::Equal, 1, {static_cast<std::uint8_t>(protocol)}}};
}

Expressions is_local_address(LoadAddressType::Of of) {
  return {LoadAddressType{of, 1}, Compare{Compare::Op::Equal, 1, {kTypeLocal, 0, 0, 0}}};
}

Expression jump(std::string chain) { return Verdict{Verdict::Kind::Jump, std::move(chain)}; }
Expression go_to(std::string chain) { return Verdict{Verdict::Kind::Goto, std::move(chain)}; }
Expression drop() { return Verdict{Verdict::Kind::Drop, {}}; }
Expression member(std::string set, bool invert) {
  return Lookup{std::move(set), 1, std::nullopt, invert};
}
Expression verdict_of(std::string map) {
  return Lookup{std::move(map), 1, kVerdictRegister, false};
}

}  // namespace shunt::backend::nft
