// One protobuf message that is being read: protozero's reader, with every wire type checked before
// its value is taken (protozero asserts there, or reads on blindly), and with a name for where in
// the object we are. The one user of protozero, together with protobuf_message.cpp.
//
//   while (m.next()) {
//     switch (m.field()) {
//       case 3: out.port = m.int32("port"); break;
//       case 8: read_hints(m.message("hints"), out); break;
//       default: m.skip();
//     }
//   }
//
// What is wrong is thrown as a Mistake; `caught` ends its way. Exceptions, because half of the
// lines would be checks otherwise, and because protozero throws anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>

#include "kube/findings.h"

namespace shunt::kube::protobuf {

struct Mistake {
  std::string what;  // "spec.ports[0].port: expected a number, got bytes"
};

class Message {
 public:
  static constexpr std::size_t kAlone = static_cast<std::size_t>(-1);  // not one of a list

  explicit Message(std::string_view bytes) : Message(bytes, nullptr, "", kAlone) {}

  bool next() { return reader_.next(); }
  std::uint32_t field() const { return reader_.tag(); }
  void skip() { reader_.skip(); }

  // The value of the current field. `name` and `index` are for messages of what is wrong with it.
  std::string_view text(const char* name, std::size_t index = kAlone);
  std::string_view bytes(const char* name, std::size_t index = kAlone);
  std::int32_t int32(const char* name);
  std::int64_t int64(const char* name);
  bool boolean(const char* name);
  // It refers to this message, which must outlive it.
  Message message(const char* name, std::size_t index = kAlone) {
    return {bytes(name, index), this, name, index};
  }

  [[noreturn]] void refuse(const char* name, std::size_t index, const std::string& what) const;
  std::string path(const char* name, std::size_t index) const;

  // How many of the fields that are still to come have this number. For reserving: a growing
  // vector of endpoints would move every one of them several times.
  std::size_t count_ahead(std::uint32_t field) const;

 private:
  Message(std::string_view bytes, const Message* outer, const char* name, std::size_t index)
      : reader_(bytes.data(), bytes.size()), outer_(outer), name_(name), index_(index) {}

  void expect(protozero::pbf_wire_type type, const char* name, std::size_t index) const {
    if (reader_.wire_type() != type) {
      refuse_type(type, name, index);
    }
  }
  [[noreturn]] void refuse_type(
      protozero::pbf_wire_type type, const char* name, std::size_t index) const;

  protozero::pbf_reader reader_;
  const Message* outer_;
  const char* name_;
  std::size_t index_;
};

// Runs `read`; nothing when all went well, else what was wrong.
template <typename Read>
std::optional<std::string> caught(Read read) {
  try {
    read();
    return std::nullopt;
  } catch (const Mistake& mistake) {
    return mistake.what;
  } catch (const protozero::exception& error) {
    return std::string("broken protobuf: ") + error.what();
  }
}

// The same where a mistake is all that can be found.
template <typename Read>
Findings findings_of(Read read) {
  return {.mistake = caught(read), .remarks = {}};
}

inline std::string_view Message::bytes(const char* name, std::size_t index) {
  expect(protozero::pbf_wire_type::length_delimited, name, index);
  const auto view = reader_.get_view();
  return {view.data(), view.size()};
}

inline std::int64_t Message::int64(const char* name) {
  expect(protozero::pbf_wire_type::varint, name, kAlone);
  return reader_.get_int64();
}

inline bool Message::boolean(const char* name) { return int64(name) != 0; }

}  // namespace shunt::kube::protobuf
