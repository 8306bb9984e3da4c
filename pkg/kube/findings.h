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

// Values of the right type that say nothing we know: ranges that are none, unknown address types.
// They stay as they came, and whoever could use them passes over them; they are found here, in the
// value and so for every encoding, because that is where somebody still tells the log.
inline constexpr std::size_t kMaxOddities = 100;  // of one object; who mends those sees the next
std::vector<std::string> oddities(const EndpointSlice& slice);
std::vector<std::string> oddities(const Node& node);
std::vector<std::string> oddities(const ServiceCidr& service_cidr);
inline std::vector<std::string> oddities(const Service&) { return {}; }  // the model's part

// The object's name, or `nameless` for one without. A lost object has one issue, the first: the
// others are often its consequences.
std::vector<DecodeIssue> issues_of(
    const Findings& findings, bool with_remarks, const ObjectKey& key, const std::string& nameless);

// The same of an object that was read, with its oddities.
template <typename T>
std::vector<DecodeIssue> issues_of(
    const Findings& findings, const T& object, const std::string& nameless) {
  Findings odd{.mistake = findings.mistake, .remarks = oddities(object)};
  return odd.remarks.empty()
             ? issues_of(findings, minds_addresses(object), object.meta.key, nameless)
             : issues_of(odd, true, object.meta.key, nameless);
}

// An item of a list goes to the sink, or what is wrong with it does.
template <typename T>
void deliver(T item, const Findings& findings, std::size_t index, const ListSink<T>& sink) {
  if (findings.mistake || !findings.remarks.empty() || !oddities(item).empty()) {
    for (DecodeIssue& issue : issues_of(findings, item, "items[" + std::to_string(index) + "]")) {
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
