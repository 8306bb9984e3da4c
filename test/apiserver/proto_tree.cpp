#include "test/apiserver/proto_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_reader.hpp>

namespace shunt::test_api {
namespace {

bool is_text(std::string_view bytes) {
  return std::ranges::all_of(
      bytes, [](unsigned char c) { return c >= 0x20 || c == '\n' || c == '\t'; });
}

void add_lines(
    const std::vector<ProtoField>& fields,
    const std::string& parent,
    const std::vector<std::string>& blanked,
    std::string& out) {
  for (const ProtoField& field : fields) {
    const std::string path = parent + std::to_string(field.number);
    if (field.is_message) {
      add_lines(field.fields, path + ".", blanked, out);
    } else if (std::ranges::find(blanked, path) != blanked.end()) {
      out += path + "\n";
    } else {
      out += fmt::format(
          "{} = {}\n", path, field.bytes.empty() ? std::to_string(field.integer) : field.bytes);
    }
  }
}

}  // namespace

std::optional<std::vector<ProtoField>> parse_proto(std::string_view bytes) {
  std::vector<ProtoField> out;
  try {
    protozero::pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      ProtoField& field = out.emplace_back();
      field.number = reader.tag();
      if (reader.wire_type() == protozero::pbf_wire_type::varint) {
        field.integer = reader.get_uint64();
      } else if (reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
        field.bytes = reader.get_string();
        auto inner = is_text(field.bytes) ? std::nullopt : parse_proto(field.bytes);
        field.is_message = inner.has_value();
        field.fields = inner.value_or(std::vector<ProtoField>());
      } else {
        return std::nullopt;  // nothing in the API is of a fixed size
      }
    }
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
  return out;
}

std::string proto_lines(
    const std::vector<ProtoField>& fields, const std::vector<std::string>& blanked) {
  std::string out;
  add_lines(fields, "", blanked, out);
  return out;
}

std::vector<ProtoField> parse_envelope(std::string_view bytes) {
  if (!bytes.starts_with(std::string_view("k8s\0", 4))) {
    return {};
  }
  return parse_proto(bytes.substr(4)).value_or(std::vector<ProtoField>());
}

std::string proto_bytes(const std::vector<ProtoField>& fields, std::uint32_t number) {
  const auto found = std::find_if(fields.rbegin(), fields.rend(), [&](const ProtoField& field) {
    return field.number == number;
  });
  return found == fields.rend() ? "" : found->bytes;
}

}  // namespace shunt::test_api
