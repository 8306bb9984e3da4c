// Protobuf as tests write it: fields by their numbers, put together as text.
//
//   enveloped("Service", bytes(1, bytes(1, "web") + bytes(3, "shop")))
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shunt::kube::testing {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
  }
  return out + static_cast<char>(value);
}

inline std::string tag(unsigned field, unsigned wire_type) {
  return varint(std::uint64_t{field} << 3U | wire_type);
}

// A string, a message or bytes.
inline std::string bytes(unsigned field, std::string_view value) {
  return tag(field, 2) + varint(value.size()) + std::string(value);
}

inline std::string number(unsigned field, std::int64_t value) {
  return tag(field, 0) + varint(static_cast<std::uint64_t>(value));
}

inline std::string entry(unsigned field, std::string_view key, std::string_view value) {
  return bytes(field, bytes(1, key) + bytes(2, value));
}

// The envelope, as Go writes it: typeMeta, raw and two empty strings.
inline std::string enveloped(
    std::string_view kind, std::string_view raw, std::string_view api_version = "v1") {
  return std::string("k8s\0", 4) + bytes(1, bytes(1, api_version) + bytes(2, kind)) +
         bytes(2, raw) + bytes(3, "") + bytes(4, "");
}

inline std::string watch_event(std::string_view type, std::string_view object) {
  return bytes(1, type) + bytes(2, bytes(1, object));
}

// A frame of a watch stream: four bytes of length, the highest first.
inline std::string framed(std::string_view event) {
  std::string out;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out += static_cast<char>(event.size() >> shift & 0xffU);
  }
  return out + std::string(event);
}

inline std::string metadata(std::string_view name, std::string_view version = "") {
  return bytes(1, name) + bytes(3, "ns") + bytes(6, version);
}

}  // namespace shunt::kube::testing
