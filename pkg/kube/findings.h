// What a decoder found wrong inside one API object, and how that becomes DecodeIssues: the same for
// JSON and protobuf.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/decoded.h"

namespace shunt::kube {

struct Findings {
  // The first field that is not what the API says it is: the object cannot be used.
  std::optional<std::string> mistake;
  std::vector<std::string> remarks;  // oddities that lose only a part of the object
};

// Host names of an FQDN slice are no addresses and need not be.
template <typename T>
bool minds_addresses(const T&) {
  return true;
}
inline bool minds_addresses(const EndpointSlice& slice) {
  return slice.address_type == "IPv4" || slice.address_type == "IPv6";
}

// The object's name, or `nameless` for one without. A lost object has one issue, the first: the
// others are often its consequences.
std::vector<DecodeIssue> issues_of(
    const Findings& findings, bool with_remarks, const ObjectKey& key, const std::string& nameless);

// An item of a list goes to the sink, or what is wrong with it does.
template <typename T>
void deliver(T item, const Findings& findings, std::size_t index, const ListSink<T>& sink) {
  if (findings.mistake || !findings.remarks.empty()) {
    for (DecodeIssue& issue : issues_of(
             findings,
             minds_addresses(item),
             item.meta.key,
             "items[" + std::to_string(index) + "]")) {
      sink.on_issue(std::move(issue));
    }
  }
  if (!findings.mistake) {
    sink.on_item(std::move(item));
  }
}

// A body that is all there, through the decoder for those that are not.
template <typename T, template <typename> typename Decoder>
Result<DecodedList<T>> decode_whole_list(std::string_view body) {
  DecodedList<T> list;
  Decoder<T> decoder(
      {.on_item = [&](T&& item) { list.items.push_back(std::move(item)); },
       .on_issue = [&](DecodeIssue&& issue) { list.issues.push_back(std::move(issue)); }});
  if (auto fed = decoder.feed(body); !fed) {
    return tl::unexpected(fed.error());
  }
  auto meta = decoder.finish();
  if (!meta) {
    return tl::unexpected(meta.error());
  }
  list.meta = std::move(*meta);
  return list;
}

// The kind that the API gives a T, "EndpointSlice".
template <typename T>
constexpr std::string_view kind_of();
template <>
constexpr std::string_view kind_of<Service>() {
  return "Service";
}
template <>
constexpr std::string_view kind_of<EndpointSlice>() {
  return "EndpointSlice";
}
template <>
constexpr std::string_view kind_of<Node>() {
  return "Node";
}
template <>
constexpr std::string_view kind_of<ServiceCidr>() {
  return "ServiceCIDR";
}

}  // namespace shunt::kube
