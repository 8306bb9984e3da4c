// In which formats we ask for objects, and in which one an answer is (spec/api-objects.md §2, §7).
// Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kube/decoded.h"

namespace shunt::apiserver {

enum class Format : std::uint8_t { Json, Protobuf };

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

// Protobuf, or JSON where there is none: not every server has protobuf for every resource.
inline constexpr std::string_view kAnyAccept =
    "application/vnd.kubernetes.protobuf, application/json";

// What KubeProxyConfiguration's clientConnection asks for: acceptContentTypes as it stands when it
// is set, otherwise what `content_type` prefers, of the formats that we can read.
std::string accept_header(std::string_view content_type, std::string_view accept_content_types);

// Of an answer's Content-Type, whatever was asked. What is neither is given to the JSON decoder,
// which then says what it is not.
Format format_of(std::string_view content_type);

template <typename T>
std::unique_ptr<kube::ListDecoder<T>> list_decoder(Format format, kube::ListSink<T> sink);

template <typename T>
Result<kube::WatchEvent<T>> decode_watch_event(Format format, std::string_view frame);

}  // namespace shunt::apiserver
