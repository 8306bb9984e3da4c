#include "kube/protobuf_message.h"

#include <utility>

#include "kube/utf8.h"

namespace shunt::kube::protobuf {
namespace {

const char* words_of(protozero::pbf_wire_type type) {
  switch (type) {
    case protozero::pbf_wire_type::varint:
      return "a number";
    case protozero::pbf_wire_type::length_delimited:
      return "bytes";
    default:
      return "a fixed-size number";
  }
}

}  // namespace

std::string_view Message::text(const char* name, std::size_t index) {
  const std::string_view out = bytes(name, index);
  if (!is_utf8(out)) {
    refuse(name, index, "not UTF-8: \"" + excerpt(out) + "\"");
  }
  return out;
}

std::int32_t Message::int32(const char* name) {
  const std::int64_t value = int64(name);
  if (!std::in_range<std::int32_t>(value)) {
    refuse(name, kAlone, "expected a 32-bit integer, got " + std::to_string(value));
  }
  return static_cast<std::int32_t>(value);
}

void Message::refuse_type(
    protozero::pbf_wire_type type, const char* name, std::size_t index) const {
  refuse(
      name,
      index,
      std::string("expected ") + words_of(type) + ", got " + words_of(reader_.wire_type()));
}

void Message::refuse(const char* name, std::size_t index, const std::string& what) const {
  throw Mistake{path(name, index) + ": " + what};
}

// "spec.ports[0].port". Costs nothing until it is asked for: the messages hold all of it.
std::string Message::path(const char* name, std::size_t index) const {
  std::string out = outer_ == nullptr ? "" : outer_->path(name_, index_) + ".";
  out += name;
  if (index != kAlone) {
    out += '[' + std::to_string(index) + ']';
  }
  return out;
}

std::size_t Message::count_ahead(std::uint32_t field) const {
  std::size_t count = 0;
  for (protozero::pbf_reader ahead = reader_; ahead.next(); ahead.skip()) {
    count += ahead.tag() == field ? 1 : 0;
  }
  return count;
}

}  // namespace shunt::kube::protobuf
