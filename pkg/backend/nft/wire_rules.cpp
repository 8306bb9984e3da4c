#include "backend/nft/wire_rules.h"

#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>

#include <array>
#include <cstring>

#include "base/handle.h"
#include "netlink/batch.h"

namespace shunt::backend::nft {
namespace {

using NftnlSet = Handle<nftnl_set, nftnl_set_free>;
using NftnlChain = Handle<nftnl_chain, nftnl_chain_free>;
using NftnlRule = Handle<nftnl_rule, nftnl_rule_free>;

// A rule or set of ours is below this; libnftnl writes without asking for the room.
constexpr std::size_t kRoom = std::size_t{16} * 1024;

// ---- userdata: type-length-value triples, which nft reads to print what the kernel does not keep
// ----

class Userdata {
 public:
  Userdata& bytes(std::uint8_t type, const std::vector<std::uint8_t>& value) {
    out_.push_back(type);
    out_.push_back(static_cast<std::uint8_t>(value.size()));
    out_.insert(out_.end(), value.begin(), value.end());
    return *this;
  }
  Userdata& number(std::uint8_t type, std::uint32_t value) {
    std::vector<std::uint8_t> raw(sizeof value);
    std::memcpy(raw.data(), &value, sizeof value);  // host order, as libnftnl writes it
    return bytes(type, raw);
  }
  Userdata& text(std::uint8_t type, const std::string& value) {
    std::vector<std::uint8_t> raw(value.begin(), value.end());
    raw.push_back(0);
    return bytes(type, raw);
  }
  const std::vector<std::uint8_t>& get() const { return out_; }

 private:
  std::vector<std::uint8_t> out_;
};

// libnftnl/udata.h and nft's own numbers (nftables 1.0.6, src/expression.c, src/payload.c,
// src/proto.c): they are part of nft's stored format. A map declared with `typeof` keeps its key
// and data as expressions.
constexpr std::uint8_t kSetKeyByteOrder = 0;
constexpr std::uint8_t kSetDataByteOrder = 1;
constexpr std::uint8_t kSetKeyTypeof = 3;
constexpr std::uint8_t kSetDataTypeof = 4;
constexpr std::uint8_t kSetComment = 7;
constexpr std::uint32_t kBigEndian = 2;
constexpr std::uint8_t kExpressionKind = 0;
constexpr std::uint8_t kExpressionBody = 1;
constexpr std::uint32_t kKindPayload = 7;
constexpr std::uint32_t kKindMeta = 9;
constexpr std::uint32_t kKindConcat = 13;
constexpr std::uint32_t kKindNumgen = 23;
constexpr std::uint32_t kProtoTh = 11;
constexpr std::uint32_t kProtoIp = 12;
constexpr std::uint32_t kProtoIp6 = 13;
constexpr std::uint32_t kIpDaddr = 12;
constexpr std::uint32_t kIp6Daddr = 9;
constexpr std::uint32_t kThDport = 2;

std::vector<std::uint8_t> expression(std::uint32_t kind, const Userdata& body) {
  return Userdata().number(kExpressionKind, kind).bytes(kExpressionBody, body.get()).get();
}
std::vector<std::uint8_t> payload_expression(std::uint32_t proto, std::uint32_t field) {
  return expression(kKindPayload, Userdata().number(0, proto).number(1, field));
}
std::vector<std::uint8_t> daddr_expression(bool v6) {
  return payload_expression(v6 ? kProtoIp6 : kProtoIp, v6 ? kIp6Daddr : kIpDaddr);
}

std::vector<std::uint8_t> slot_map_userdata(bool v6, bool with_address) {
  const std::vector<std::uint8_t> dport = payload_expression(kProtoTh, kThDport);
  // ip daddr . meta l4proto . th dport . numgen random mod 65536, with or without the address
  Userdata key;
  std::uint8_t part = 0;
  if (with_address) {
    key.bytes(part++, daddr_expression(v6));
  }
  key.bytes(part++, expression(kKindMeta, Userdata().number(0, NFT_META_L4PROTO)));
  key.bytes(part++, dport);
  key.bytes(
      part,
      expression(
          kKindNumgen,
          Userdata().number(0, NFT_NG_RANDOM).number(1, 1U << kLargestClassBits).number(2, 0)));
  // ip daddr . th dport
  Userdata data;
  data.bytes(0, daddr_expression(v6)).bytes(1, dport);
  return Userdata()
      .number(kSetKeyByteOrder, 0)
      .number(kSetDataByteOrder, 0)
      .bytes(kSetKeyTypeof, expression(kKindConcat, key))
      .bytes(kSetDataTypeof, expression(kKindConcat, data))
      .get();
}

// ---- sets ----

// nft's type numbers; a concatenation folds them, six bits each.
constexpr std::uint32_t kTypeIpv4 = 7;
constexpr std::uint32_t kTypeIpv6 = 8;
constexpr std::uint32_t kTypeProto = 12;
constexpr std::uint32_t kTypeService = 13;
constexpr std::uint32_t kTypeInteger = 4;
constexpr std::uint32_t kSetConcat = 0x80;  // NFT_SET_CONCAT, since Linux 5.6

struct KeyType {
  std::uint32_t type;
  std::uint32_t length;
};

KeyType key_type(KeyShape shape, bool v6) {
  const std::uint32_t address = v6 ? kTypeIpv6 : kTypeIpv4;
  const std::uint32_t size = v6 ? 16 : 4;
  const std::uint32_t node_port = kTypeProto << 6 | kTypeService;
  const std::uint32_t frontend = address << 12 | node_port;
  switch (shape) {
    case KeyShape::Address:
      return {address, size};
    case KeyShape::Frontend:
      return {frontend, size + 8};
    case KeyShape::NodePort:
      return {node_port, 8};
    case KeyShape::Pair:
      return {(address << 6 | address) << 12 | node_port, 2 * size + 8};
    case KeyShape::FrontendSlot:
      return {frontend << 6 | kTypeInteger, size + 12};
    case KeyShape::NodePortSlot:
      return {node_port << 6 | kTypeInteger, 12};
    case KeyShape::FrontendSource:
      return {frontend << 6 | address, 2 * size + 8};
  }
  return {};
}

void put_set(netlink::Batch& batch, const Set& set, std::uint8_t family, std::uint32_t id) {
  const bool v6 = family == NFPROTO_IPV6;
  const NftnlSet made(nftnl_set_alloc());
  nftnl_set_set_str(made.get(), NFTNL_SET_TABLE, kTable);
  nftnl_set_set_str(made.get(), NFTNL_SET_NAME, set.name.c_str());
  nftnl_set_set_u32(made.get(), NFTNL_SET_FAMILY, family);
  nftnl_set_set_u32(made.get(), NFTNL_SET_ID, id);
  const KeyType key = key_type(set.shape, v6);
  nftnl_set_set_u32(made.get(), NFTNL_SET_KEY_TYPE, key.type);
  nftnl_set_set_u32(made.get(), NFTNL_SET_KEY_LEN, key.length);
  std::uint32_t flags = 0;
  std::vector<std::uint8_t> userdata;
  if (set.interval) {
    flags |= NFT_SET_INTERVAL;
    userdata = Userdata().number(kSetKeyByteOrder, kBigEndian).get();
  }
  if (set.shape == KeyShape::FrontendSource) {
    flags |= kSetConcat;
    const std::array<std::uint8_t, 4> lengths{
        static_cast<std::uint8_t>(v6 ? 16 : 4), 1, 2, static_cast<std::uint8_t>(v6 ? 16 : 4)};
    (void)nftnl_set_set_data(  // fails only without memory
        made.get(),
        NFTNL_SET_DESC_CONCAT,
        lengths.data(),
        static_cast<std::uint32_t>(lengths.size()));
    userdata.clear();
  }
  if (set.dynamic()) {
    flags |= NFT_SET_EVAL | NFT_SET_TIMEOUT;
    nftnl_set_set_u32(made.get(), NFTNL_SET_DESC_SIZE, set.size);
  }
  if (set.holds == Set::Holds::Endpoints) {
    flags |= NFT_SET_MAP;
    const std::uint32_t address = v6 ? kTypeIpv6 : kTypeIpv4;
    nftnl_set_set_u32(made.get(), NFTNL_SET_DATA_TYPE, address << 6 | kTypeService);
    nftnl_set_set_u32(made.get(), NFTNL_SET_DATA_LEN, v6 ? 20 : 8);
    if (set.shape == KeyShape::FrontendSlot || set.shape == KeyShape::NodePortSlot) {
      userdata = slot_map_userdata(v6, set.shape == KeyShape::FrontendSlot);
    }
  } else if (set.holds == Set::Holds::Addresses) {
    flags |= NFT_SET_MAP;
    nftnl_set_set_u32(made.get(), NFTNL_SET_DATA_TYPE, v6 ? kTypeIpv6 : kTypeIpv4);
    nftnl_set_set_u32(made.get(), NFTNL_SET_DATA_LEN, v6 ? 16 : 4);
  } else if (set.holds == Set::Holds::Verdicts) {
    flags |= NFT_SET_MAP;
    nftnl_set_set_u32(made.get(), NFTNL_SET_DATA_TYPE, NFT_DATA_VERDICT);
  }
  if (!set.comment.empty()) {
    const auto comment = Userdata().text(kSetComment, set.comment).get();
    userdata.insert(userdata.end(), comment.begin(), comment.end());
  }
  nftnl_set_set_u32(made.get(), NFTNL_SET_FLAGS, flags);
  if (!userdata.empty()) {
    (void)nftnl_set_set_data(  // fails only without memory
        made.get(),
        NFTNL_SET_USERDATA,
        userdata.data(),
        static_cast<std::uint32_t>(userdata.size()));
  }
  if (set.counter) {
    nftnl_set_add_expr(made.get(), nftnl_expr_alloc("counter"));
  }
  batch.begin(NFT_MSG_NEWSET, NLM_F_CREATE, family);
  batch.payload(
      kRoom, [&](nlmsghdr* message) { nftnl_set_nlmsg_build_payload(message, made.get()); });
  batch.end();
}

// ---- chains ----

std::uint32_t hook_number(Chain::Hook::Point point) {
  switch (point) {
    case Chain::Hook::Point::Prerouting:
      return NF_INET_PRE_ROUTING;
    case Chain::Hook::Point::Input:
      return NF_INET_LOCAL_IN;
    case Chain::Hook::Point::Forward:
      return NF_INET_FORWARD;
    case Chain::Hook::Point::Output:
      return NF_INET_LOCAL_OUT;
    case Chain::Hook::Point::Postrouting:
      return NF_INET_POST_ROUTING;
  }
  return 0;
}

void put_chain(netlink::Batch& batch, const Chain& chain, std::uint8_t family) {
  const NftnlChain made(nftnl_chain_alloc());
  nftnl_chain_set_str(made.get(), NFTNL_CHAIN_TABLE, kTable);
  nftnl_chain_set_str(made.get(), NFTNL_CHAIN_NAME, chain.name.c_str());
  if (chain.hook) {
    nftnl_chain_set_u32(made.get(), NFTNL_CHAIN_HOOKNUM, hook_number(chain.hook->point));
    nftnl_chain_set_s32(made.get(), NFTNL_CHAIN_PRIO, chain.hook->priority);
    nftnl_chain_set_str(
        made.get(),
        NFTNL_CHAIN_TYPE,
        chain.hook->type == Chain::Hook::Type::Nat ? "nat" : "filter");
    nftnl_chain_set_u32(made.get(), NFTNL_CHAIN_POLICY, NF_ACCEPT);
  }
  batch.begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE, family);
  batch.payload(
      kRoom, [&](nlmsghdr* message) { nftnl_chain_nlmsg_build_payload(message, made.get()); });
  batch.end();
}

// ---- rules ----

void set_bytes(nftnl_expr* e, std::uint16_t attribute, const void* data, std::size_t size) {
  (void)nftnl_expr_set(
      e, attribute, data, static_cast<std::uint32_t>(size));  // fails only without memory
}

struct Builder {
  std::uint8_t family;

  nftnl_expr* operator()(const LoadPayload& in) const {
    nftnl_expr* e = nftnl_expr_alloc("payload");
    nftnl_expr_set_u32(
        e,
        NFTNL_EXPR_PAYLOAD_BASE,
        in.base == LoadPayload::Base::Network ? NFT_PAYLOAD_NETWORK_HEADER
                                              : NFT_PAYLOAD_TRANSPORT_HEADER);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, in.offset);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, in.length);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, in.reg);
    return e;
  }
  nftnl_expr* operator()(const LoadMeta& in) const {
    nftnl_expr* e = nftnl_expr_alloc("meta");
    std::uint32_t key = NFT_META_L4PROTO;
    if (in.key == LoadMeta::Key::Mark) {
      key = NFT_META_MARK;
    } else if (in.key == LoadMeta::Key::IifName) {
      key = NFT_META_IIFNAME;
    }
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, in.reg);
    return e;
  }
  nftnl_expr* operator()(const LoadCt& in) const {
    using Key = LoadCt::Key;
    const bool v6 = family == NFPROTO_IPV6;
    nftnl_expr* e = nftnl_expr_alloc("ct");
    const auto directed = [&](std::uint32_t key, std::uint8_t direction) {
      nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, key);
      nftnl_expr_set_u8(e, NFTNL_EXPR_CT_DIR, direction);
    };
    switch (in.key) {
      case Key::State:
        nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_STATE);
        break;
      case Key::Status:
        nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_STATUS);
        break;
      case Key::OriginalDestination:
        directed(v6 ? NFT_CT_DST_IP6 : NFT_CT_DST_IP, IP_CT_DIR_ORIGINAL);
        break;
      case Key::OriginalPort:
        directed(NFT_CT_PROTO_DST, IP_CT_DIR_ORIGINAL);
        break;
      case Key::ReplySource:
        directed(v6 ? NFT_CT_SRC_IP6 : NFT_CT_SRC_IP, IP_CT_DIR_REPLY);
        break;
      case Key::ReplyPort:
        directed(NFT_CT_PROTO_SRC, IP_CT_DIR_REPLY);
        break;
      case Key::Direction:
        nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_DIRECTION);
        break;
    }
    nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, in.reg);
    return e;
  }
  nftnl_expr* operator()(const LoadAddressType& in) const {
    nftnl_expr* e = nftnl_expr_alloc("fib");
    nftnl_expr_set_u32(
        e,
        NFTNL_EXPR_FIB_FLAGS,
        in.of == LoadAddressType::Of::Source ? NFTA_FIB_F_SADDR : NFTA_FIB_F_DADDR);
    nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_DREG, in.reg);
    return e;
  }
  nftnl_expr* operator()(const LoadImmediate& in) const {
    nftnl_expr* e = nftnl_expr_alloc("immediate");
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, in.reg);
    set_bytes(e, NFTNL_EXPR_IMM_DATA, in.bytes.data(), in.bytes.size());
    return e;
  }
  nftnl_expr* operator()(const Bitwise& in) const {
    nftnl_expr* e = nftnl_expr_alloc("bitwise");
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, in.reg);
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, in.reg);
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, sizeof in.mask);
    set_bytes(e, NFTNL_EXPR_BITWISE_MASK, &in.mask, sizeof in.mask);
    set_bytes(e, NFTNL_EXPR_BITWISE_XOR, &in.exclusive, sizeof in.exclusive);
    return e;
  }
  nftnl_expr* operator()(const Compare& in) const {
    nftnl_expr* e = nftnl_expr_alloc("cmp");
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, in.reg);
    nftnl_expr_set_u32(
        e, NFTNL_EXPR_CMP_OP, in.op == Compare::Op::Equal ? NFT_CMP_EQ : NFT_CMP_NEQ);
    set_bytes(e, NFTNL_EXPR_CMP_DATA, in.bytes.data(), in.bytes.size());
    return e;
  }
  nftnl_expr* operator()(const SetMark& in) const {
    nftnl_expr* e = nftnl_expr_alloc("meta");
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_MARK);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, in.reg);
    return e;
  }
  nftnl_expr* operator()(const RandomNumber& in) const {
    nftnl_expr* e = nftnl_expr_alloc("numgen");
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_DREG, in.reg);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_TYPE, NFT_NG_RANDOM);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_MODULUS, in.modulus);
    return e;
  }
  nftnl_expr* operator()(const Lookup& in) const {
    nftnl_expr* e = nftnl_expr_alloc("lookup");
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, in.reg);
    if (in.data_reg) {
      nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_DREG, *in.data_reg);
    }
    if (in.invert) {
      nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    }
    nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, in.set.c_str());
    return e;
  }
  nftnl_expr* operator()(const UpdateSet& in) const {
    nftnl_expr* e = nftnl_expr_alloc("dynset");
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_KEY, in.reg);
    if (in.data_reg) {
      nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_DATA, *in.data_reg);
    }
    nftnl_expr_set_u64(
        e,
        NFTNL_EXPR_DYNSET_TIMEOUT,
        static_cast<std::uint64_t>(std::chrono::milliseconds(in.timeout).count()));
    nftnl_expr_set_str(e, NFTNL_EXPR_DYNSET_SET_NAME, in.set.c_str());
    return e;
  }
  nftnl_expr* operator()(const Verdict& in) const {
    nftnl_expr* e = nftnl_expr_alloc("immediate");
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
    std::uint32_t code = NF_DROP;
    if (in.kind != Verdict::Kind::Drop) {
      const int jump = in.kind == Verdict::Kind::Jump ? NFT_JUMP : NFT_GOTO;
      code = static_cast<std::uint32_t>(jump);
      nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, in.chain.c_str());
    }
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, code);
    return e;
  }
  nftnl_expr* operator()(const DestinationNat& in) const {
    nftnl_expr* e = nftnl_expr_alloc("nat");
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FAMILY, family);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MIN, in.address_reg);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MIN, in.port_reg);
    return e;
  }
  nftnl_expr* operator()(const Masquerade&) const {
    nftnl_expr* e = nftnl_expr_alloc("masq");
    nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
    return e;
  }
  nftnl_expr* operator()(const Reject&) const {
    nftnl_expr* e = nftnl_expr_alloc("reject");
    nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH);
    // Port unreachable: code 3 of ICMP, 4 of ICMPv6.
    nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, family == NFPROTO_IPV6 ? 4 : 3);
    return e;
  }
};

void put_rule(netlink::Batch& batch, const Rule& rule, std::uint8_t family) {
  const NftnlRule made(nftnl_rule_alloc());
  nftnl_rule_set_str(made.get(), NFTNL_RULE_TABLE, kTable);
  nftnl_rule_set_str(made.get(), NFTNL_RULE_CHAIN, rule.chain.c_str());
  nftnl_rule_set_u32(made.get(), NFTNL_RULE_FAMILY, family);
  for (const Expression& in : rule.expressions) {
    nftnl_rule_add_expr(made.get(), std::visit(Builder{family}, in));
  }
  if (!rule.comment.empty()) {
    const auto userdata = Userdata().text(0, rule.comment).get();
    (void)nftnl_rule_set_data(  // fails only without memory
        made.get(),
        NFTNL_RULE_USERDATA,
        userdata.data(),
        static_cast<std::uint32_t>(userdata.size()));
  }
  batch.begin(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, family);
  batch.payload(
      kRoom, [&](nlmsghdr* message) { nftnl_rule_nlmsg_build_payload(message, made.get()); });
  batch.end();
}

}  // namespace

void put_fragment(netlink::Batch& batch, const Fragment& fragment, std::uint8_t family) {
  std::uint32_t id = 0;
  for (const Set& set : fragment.sets) {
    put_set(batch, set, family, ++id);
  }
  for (const Chain& chain : fragment.chains) {
    put_chain(batch, chain, family);
  }
  for (const Rule& rule : fragment.rules) {
    put_rule(batch, rule, family);
  }
}

namespace {

void put_empty_chain(netlink::Batch& batch, const std::string& chain, std::uint8_t family) {
  batch.begin(NFT_MSG_DELRULE, 0, family);  // without a handle: all of them
  batch.put_string(NFTA_RULE_TABLE, kTable);
  batch.put_string(NFTA_RULE_CHAIN, chain);
  batch.end();
}

}  // namespace

void put_rules_anew(netlink::Batch& batch, const Fragment& fragment, std::uint8_t family) {
  for (const Chain& chain : fragment.chains) {
    put_chain(batch, chain, family);  // one that is there stays
  }
  for (const Chain& chain : fragment.chains) {
    put_empty_chain(batch, chain.name, family);
  }
  for (const Rule& rule : fragment.rules) {
    put_rule(batch, rule, family);
  }
}

void put_removal(netlink::Batch& batch, const Removal& removal, std::uint8_t family) {
  for (const std::string& chain : removal.chains) {
    put_empty_chain(batch, chain, family);  // a chain with rules is busy
  }
  for (const std::string& chain : removal.chains) {
    batch.begin(NFT_MSG_DELCHAIN, 0, family);
    batch.put_string(NFTA_CHAIN_TABLE, kTable);
    batch.put_string(NFTA_CHAIN_NAME, chain);
    batch.end();
  }
  for (const std::string& set : removal.sets) {
    batch.begin(NFT_MSG_DELSET, 0, family);
    batch.put_string(NFTA_SET_TABLE, kTable);
    batch.put_string(NFTA_SET_NAME, set);
    batch.end();
  }
}

}  // namespace shunt::backend::nft
