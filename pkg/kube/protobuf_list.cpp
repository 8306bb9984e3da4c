#include "kube/protobuf_list.h"

#include "kube/protobuf_objects.h"

namespace shunt::kube::protobuf {

template <typename T>
ProtobufListDecoder<T>::ProtobufListDecoder(ListSink<T> sink, std::size_t max_item)
    : sink_(std::move(sink)),
      cutter_(std::string(kind_of<T>()) + "List", max_item),
      on_item_([this](std::optional<std::string_view> bytes) { take_item(bytes); }) {}

template <typename T>
Result<> ProtobufListDecoder<T>::feed(std::string_view piece) {
  return cutter_.feed(piece, on_item_);
}

template <typename T>
Result<ListMeta> ProtobufListDecoder<T>::finish() {
  return cutter_.finish();
}

template <typename T>
void ProtobufListDecoder<T>::take_item(std::optional<std::string_view> bytes) {
  T item;
  const Findings findings =
      bytes ? read_object(*bytes, item)
            : Findings{.mistake = "larger than the limit of an object", .remarks = {}};
  deliver(std::move(item), findings, index_++, sink_);
}

template class ProtobufListDecoder<Service>;
template class ProtobufListDecoder<EndpointSlice>;
template class ProtobufListDecoder<Node>;
template class ProtobufListDecoder<ServiceCidr>;

}  // namespace shunt::kube::protobuf
