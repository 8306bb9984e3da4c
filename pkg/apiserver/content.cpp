#include "apiserver/content.h"

#include <algorithm>

#include "base/trimmed.h"
#include "kube/decode_json.h"
#include "kube/decode_protobuf.h"
#include "kube/json_list.h"
#include "kube/protobuf_list.h"

namespace shunt::apiserver {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::string accept_header(std::string_view content_type, std::string_view accept_content_types) {
  if (!accept_content_types.empty()) {
    return std::string(accept_content_types);
  }
  return std::string(
      content_type.empty() || content_type == kProtobufType ? kAnyAccept : kJsonType);
}

Format format_of(std::string_view content_type) {
  const std::string_view type = trimmed(content_type.substr(0, content_type.find(';')));
  return equal_ignoring_case(type, kProtobufType) ? Format::Protobuf : Format::Json;
}

template <typename T>
std::unique_ptr<kube::ListDecoder<T>> list_decoder(Format format, kube::ListSink<T> sink) {
  if (format == Format::Protobuf) {
    return std::make_unique<kube::protobuf::ProtobufListDecoder<T>>(std::move(sink));
  }
  return std::make_unique<kube::JsonListDecoder<T>>(std::move(sink));
}

template <typename T>
Result<kube::WatchEvent<T>> decode_watch_event(Format format, std::string_view frame) {
  return format == Format::Protobuf ? kube::protobuf::decode_watch_event<T>(frame)
                                    : kube::decode_watch_event<T>(frame);
}

template std::unique_ptr<kube::ListDecoder<kube::Service>> list_decoder(
    Format, kube::ListSink<kube::Service>);
template std::unique_ptr<kube::ListDecoder<kube::EndpointSlice>> list_decoder(
    Format, kube::ListSink<kube::EndpointSlice>);
template std::unique_ptr<kube::ListDecoder<kube::Node>> list_decoder(
    Format, kube::ListSink<kube::Node>);
template std::unique_ptr<kube::ListDecoder<kube::ServiceCidr>> list_decoder(
    Format, kube::ListSink<kube::ServiceCidr>);

template Result<kube::WatchEvent<kube::Service>> decode_watch_event(Format, std::string_view);
template Result<kube::WatchEvent<kube::EndpointSlice>> decode_watch_event(Format, std::string_view);
template Result<kube::WatchEvent<kube::Node>> decode_watch_event(Format, std::string_view);
template Result<kube::WatchEvent<kube::ServiceCidr>> decode_watch_event(Format, std::string_view);

}  // namespace shunt::apiserver
