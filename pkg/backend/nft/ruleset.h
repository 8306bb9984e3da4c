// Tables, chains, rules, sets and elements of nf_tables as values. Pure; the bytes are wire.cpp's
// business.
//
// Registers are numbered as the kernel does (include/uapi/linux/netfilter/nf_tables.h): 1..4 are
// the 16-byte ones, 8..23 the 4-byte ones (8 is the first word of 1). What is written here must be
// what nft itself would write, so that `nft list ruleset` can print it and read it back (design.md
// §3; spec/nftables.md §8).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/nft/set_id.h"
#include "net/ip_address.h"

namespace shunt::backend::nft {

inline constexpr char kTable[] = "kube-shunt";

// ---- rules ----

struct LoadPayload {
  enum class Base : std::uint8_t { Network, Transport } base;
  std::uint32_t offset;
  std::uint32_t length;
  std::uint32_t reg;
  bool operator==(const LoadPayload&) const = default;
};
struct LoadMeta {
  enum class Key : std::uint8_t { L4Proto, Mark, IifName } key;
  std::uint32_t reg;
  bool operator==(const LoadMeta&) const = default;
};
struct LoadCt {
  enum class Key : std::uint8_t {
    State,
    Status,
    OriginalDestination,  // where the client sent it, whatever NAT made of it
    OriginalPort,
    ReplySource,  // who answers: the endpoint that NAT chose
    ReplyPort,
    Direction
  } key;
  std::uint32_t reg;
  bool operator==(const LoadCt&) const = default;
};
struct LoadAddressType {  // fib saddr type, fib daddr type
  enum class Of : std::uint8_t { Source, Destination } of;
  std::uint32_t reg;
  bool operator==(const LoadAddressType&) const = default;
};
struct LoadImmediate {
  std::uint32_t reg;
  std::vector<std::uint8_t> bytes;
  bool operator==(const LoadImmediate&) const = default;
};
struct Bitwise {  // reg = (reg & mask) ^ exclusive; four bytes, host order
  std::uint32_t reg;
  std::uint32_t mask;
  std::uint32_t exclusive;
  bool operator==(const Bitwise&) const = default;
};
struct Compare {
  enum class Op : std::uint8_t { Equal, NotEqual } op;
  std::uint32_t reg;
  std::vector<std::uint8_t> bytes;
  bool operator==(const Compare&) const = default;
};
struct SetMark {
  std::uint32_t reg;
  bool operator==(const SetMark&) const = default;
};
struct RandomNumber {  // numgen random mod
  std::uint32_t reg;
  std::uint32_t modulus;
  bool operator==(const RandomNumber&) const = default;
};
inline constexpr std::uint32_t kVerdictRegister = 0;
struct Lookup {
  std::string set;
  std::uint32_t reg;
  std::optional<std::uint32_t> data_reg;  // a map's; kVerdictRegister: its verdict is carried out
  bool invert = false;
  bool operator==(const Lookup&) const = default;
};
// Adds the element, or makes the one that is there live for `timeout` from now on; its data stays.
struct UpdateSet {
  std::string set;
  std::uint32_t reg;
  std::optional<std::uint32_t> data_reg;  // a map
  std::chrono::seconds timeout{};
  bool operator==(const UpdateSet&) const = default;
};
struct Verdict {
  enum class Kind : std::uint8_t { Jump, Goto, Drop } kind;
  std::string chain;
  bool operator==(const Verdict&) const = default;
};
struct DestinationNat {
  std::uint32_t address_reg;
  std::uint32_t port_reg;
  bool operator==(const DestinationNat&) const = default;
};
struct Masquerade {  // fully-random
  bool operator==(const Masquerade&) const = default;
};
struct Reject {  // port unreachable
  bool operator==(const Reject&) const = default;
};

using Expression = std::variant<
    LoadPayload,
    LoadMeta,
    LoadCt,
    LoadAddressType,
    LoadImmediate,
    Bitwise,
    Compare,
    SetMark,
    RandomNumber,
    Lookup,
    UpdateSet,
    Verdict,
    DestinationNat,
    Masquerade,
    Reject>;

struct Rule {
  std::string chain;
  std::vector<Expression> expressions;
  std::string comment;
  bool operator==(const Rule&) const = default;
};

struct Chain {
  struct Hook {
    enum class Type : std::uint8_t { Filter, Nat } type;
    enum class Point : std::uint8_t { Prerouting, Input, Forward, Output, Postrouting } point;
    std::int32_t priority;
    bool operator==(const Hook&) const = default;
  };
  std::string name;
  std::optional<Hook> hook;
  bool operator==(const Chain&) const = default;
};

// ---- sets ----

// The parts of a key, in order; a part is padded to a multiple of four bytes.
enum class KeyShape : std::uint8_t {
  Address,
  Frontend,        // address . l4proto . port
  NodePort,        // l4proto . port
  Pair,            // address . address . l4proto . port
  FrontendSlot,    // address . l4proto . port . slot
  NodePortSlot,    // l4proto . port . slot
  FrontendSource,  // address . l4proto . port . address
};

struct Set {
  enum class Holds : std::uint8_t { Keys, Endpoints, Addresses, Verdicts };  // all but Keys: a map
  SetId id = SetId::None;
  std::string name;
  KeyShape shape = KeyShape::Address;
  Holds holds = Holds::Keys;
  bool interval = false;
  bool counter = false;    // each element counts packets
  std::uint32_t size = 0;  // not zero: packets write its elements, each with its timeout
  std::string comment;
  bool dynamic() const { return size != 0; }
  bool operator==(const Set&) const = default;
};

// ---- elements ----

template <std::size_t N>
struct Bytes {
  std::uint8_t size = 0;
  std::array<std::uint8_t, N> bytes{};
  auto operator<=>(const Bytes&) const = default;
  std::span<const std::uint8_t> span() const { return {bytes.data(), size}; }
  void append(const std::uint8_t* data, std::size_t length) {  // padded to four bytes
    std::memcpy(bytes.data() + size, data, length);
    size = static_cast<std::uint8_t>(size + ((length + 3) & ~std::size_t{3}));
  }
};
using KeyBytes = Bytes<40>;
using DataBytes = Bytes<20>;

struct Element {
  KeyBytes key;
  // Maps of endpoints: address . port. Intervals of concatenated keys: the last value of the last
  // part, whose first value ends the key.
  DataBytes data;
  bool interval_end = false;  // the first address after an interval
  std::string text;           // comment; of a map of verdicts: the chain
  bool jump = false;          // the verdict is a jump, not a goto
  auto operator<=>(const Element&) const = default;
};

// ---- the program and its changes ----

struct Fragment {
  std::vector<Set> sets;
  std::vector<Chain> chains;
  std::vector<Rule> rules;
  bool operator==(const Fragment&) const = default;
};

struct Removal {
  std::vector<std::string> chains;  // with their rules
  std::vector<std::string> sets;
  bool empty() const { return chains.empty() && sets.empty(); }
};

struct Program : Fragment {
  net::Family family = net::Family::IPv4;
  std::string comment;  // of the table; holds the version: a hash of the rest
  bool operator==(const Program&) const = default;
};

// The set that has this id in the program; a program has all of them.
inline const Set& set_in(const Fragment& program, SetId id) {
  return *std::ranges::find(program.sets, id, &Set::id);
}

// Elements to delete and to add, by set; within a transaction sets are emptied first, and every
// deletion comes before every addition.
struct ElementChanges {
  std::vector<SetId> emptied;
  std::array<std::vector<Element>, kSetCount> deletions;
  std::array<std::vector<Element>, kSetCount> additions;
  std::size_t count = 0;

  void add(SetId set, Element element) {
    additions[static_cast<std::size_t>(set)].push_back(std::move(element));
    ++count;
  }
  void remove(SetId set, Element element) {
    deletions[static_cast<std::size_t>(set)].push_back(std::move(element));
    ++count;
  }
  void empty_set(SetId set) {
    emptied.push_back(set);
    ++count;
  }
  void clear() {  // what was allocated is kept
    emptied.clear();
    for (auto* lists : {&deletions, &additions}) {
      for (auto& list : *lists) {
        list.clear();
      }
    }
    count = 0;
  }
};

}  // namespace shunt::backend::nft
