// How the objects of the API look in protobuf: one table a message, in the order of field numbers,
// which is the order in which the real server writes them.
//
// Knowingly absent, so never encoded: NodeSpec.configSource and NodeStatus.config (long dead),
// Events (they stay JSON), and whatever fields a newer Kubernetes has.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shunt::test_api::proto {

enum class Type : std::uint8_t {
  String,
  Int,
  Bool,
  Time,         // RFC 3339 -> {seconds, nanos}; the zero time is an empty message
  IntOrString,  // 80 or "http" -> {type, intVal, strVal}
  RawJson,      // FieldsV1: its JSON text in a message of one field
  StringMap,    // entries {key, value}
  QuantityMap,  // entries {key, {string}}
  Nested,
};

enum class Rule : std::uint8_t {
  Always,    // no pointer in Go: written even when it is absent or zero
  Present,   // a pointer: written when it is there, even when it is zero
  Repeated,  // a list or map: as often as there are elements
};

struct Message;

struct Field {
  std::string_view name;  // in JSON
  std::uint32_t number = 0;
  Type type = Type::String;
  Rule rule = Rule::Always;
  const Message* message = nullptr;
};

inline constexpr std::size_t kMaxFields = 24;

struct Message {
  std::span<const Field> fields;
};

extern const Message kService;
extern const Message kEndpointSlice;
extern const Message kNode;
extern const Message kServiceCidr;
extern const Message kStatus;
extern const Message kListMeta;

}  // namespace shunt::test_api::proto
