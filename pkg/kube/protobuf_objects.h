// The API objects in protobuf: one function a message, fields in the order of spec/api-objects.md.
#pragma once

#include <string_view>

#include "kube/findings.h"
#include "kube/protobuf_message.h"

namespace shunt::kube::protobuf {

// Bytes of an object into `out`, which keeps what was read before a mistake.
Findings read_object(std::string_view bytes, Service& out);
Findings read_object(std::string_view bytes, EndpointSlice& out);
Findings read_object(std::string_view bytes, Node& out);
Findings read_object(std::string_view bytes, ServiceCidr& out);
Findings read_object(std::string_view bytes, Bookmark& out);
Findings read_object(std::string_view bytes, ApiStatus& out);
Findings read_object(std::string_view bytes, ListMeta& out);

// The envelope of everything but the outside of a watch event: "k8s\0" and a runtime.Unknown.
inline constexpr std::string_view kMagic{"k8s\0", 4};

struct TypeMeta {
  std::string_view api_version;
  std::string_view kind;
};
struct Envelope {
  TypeMeta type;
  std::string_view raw;
};
// Nothing is copied. Throws a Mistake or what protozero throws.
Envelope open_envelope(std::string_view body);
TypeMeta read_type_meta(Message m);

}  // namespace shunt::kube::protobuf
