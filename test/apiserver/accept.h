// Which encoding an answer has: what the client's Accept header likes best among what we speak.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shunt::test_api {

enum class Encoding : std::uint8_t { AsJson, AsProtobuf };

inline constexpr const char* kJsonType = "application/json";
inline constexpr const char* kProtobufType = "application/vnd.kubernetes.protobuf";
inline constexpr const char* kProtobufWatchType =
    "application/vnd.kubernetes.protobuf;stream=watch";

// Nothing: the client accepts none of ours (406). No header at all, and */*, mean JSON. Of equal
// preferences (q) the first counts.
std::optional<Encoding> negotiate(std::string_view accept, bool offer_protobuf);

}  // namespace shunt::test_api
