// The API's objects as the bytes of application/vnd.kubernetes.protobuf, made from their JSON.
//
// A body, and each object of a watch, is an envelope: "k8s\0" and a runtime.Unknown of apiVersion,
// kind and the object's own bytes. The envelope is written around those as a head and a tail, so
// that the bytes of an object can be kept once and copied into every list and watch.
#pragma once

#include <string>
#include <string_view>

#include "test/apiserver/proto_schema.h"

namespace shunt::test_api::proto {

// The bytes of `json`, an object. Fields the schema does not know are left out (kind and apiVersion
// among them), and so are values of another type than the schema's: no server could store them.
std::string encoded(const Message& schema, std::string_view json);

std::string envelope_head(std::string_view api_version, std::string_view kind, std::size_t size);
std::string_view envelope_tail();
// Head, object and tail in one.
std::string enveloped(std::string_view api_version, std::string_view kind, std::string_view bytes);

// What comes before an object of `size` bytes in a watch: the length of the frame, the WatchEvent
// around it, the envelope's head. The envelope's tail ends the frame.
std::string frame_head(
    std::string_view type, std::string_view api_version, std::string_view kind, std::size_t size);

// A list is an envelope head, its metadata, its items and an envelope tail.
std::string list_metadata(std::string_view json);
std::string item_head(std::size_t size);

}  // namespace shunt::test_api::proto
