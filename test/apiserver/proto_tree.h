// Protobuf bytes as lines of text, without a schema: what a test compares with recorded bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shunt::test_api {

// One field. A length-delimited one is a message if its bytes can be read as one and are not plain
// text: a guess, but the same guess for both sides of a comparison.
struct ProtoField {
  std::uint32_t number = 0;
  std::uint64_t integer = 0;
  std::string bytes;
  std::vector<ProtoField> fields;
  bool is_message = false;
};

// Nothing: these bytes are no message.
std::optional<std::vector<ProtoField>> parse_proto(std::string_view bytes);

// "2.1.6 = 714" a leaf, in the order of the bytes. An empty message is a leaf too. Leaves whose
// path is in `blanked` have no value.
std::string proto_lines(
    const std::vector<ProtoField>& fields, const std::vector<std::string>& blanked = {});

// The fields of an envelope; empty without the magic in front.
std::vector<ProtoField> parse_envelope(std::string_view bytes);

// The bytes of the last field with this number; "" when there is none.
std::string proto_bytes(const std::vector<ProtoField>& fields, std::uint32_t number);

}  // namespace shunt::test_api
