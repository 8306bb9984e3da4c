// The protobuf decoders and the framer against arbitrary bytes. The first byte chooses the target
// (see kTargets), the rest is what it reads. Crashes and sanitizer reports are bugs, and so is a
// broken promise of decode_protobuf.h: those abort in `promise`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kube/decode_protobuf.h"
#include "kube/testing/protobuf_bytes.h"
#include "kube/utf8.h"
#include "promises.h"

namespace shunt::kube {
namespace {

using fuzz::lost;
using fuzz::promise;
using fuzz::promise_plain;

template <typename T>
void list(std::string_view body) {
  const auto got = protobuf::decode_list<T>(body);
  if (!got) {
    promise_plain(got.error());
    return;
  }
  (void)lost(got->issues);
  for (const T& item : got->items) {
    promise(is_utf8(item.meta.key.name) && is_utf8(item.meta.uid), "what was read is text");
  }
  const auto again = protobuf::decode_list<T>(body);
  promise(again && again->items == got->items, "decoding has no memory");
}

// The message inside the envelope.
template <typename T>
void object(const char* kind, std::string_view raw) {
  std::vector<DecodeIssue> issues;
  const std::string body = testing::enveloped(kind, raw);
  const auto got = protobuf::decode_object<T>(body, &issues);
  promise(lost(issues) == 0, "an object that is lost is an error");
  // The same object must come out of a list and of an event.
  const auto in_list = protobuf::decode_list<T>(testing::enveloped(
      std::string(kind) + "List", testing::bytes(2, raw) + testing::bytes(2, raw)));
  promise(in_list.has_value(), "an item can only harm itself");
  const auto event = protobuf::decode_watch_event<T>(testing::watch_event("ADDED", body));
  promise(event.has_value(), "an object cannot harm its event");
  if (!got) {
    promise_plain(got.error());
    promise(in_list->items.empty() && lost(in_list->issues) == 2, "a lost item is an issue");
    promise(!event->object && lost(event->issues) == 1, "a lost object is an issue");
    return;
  }
  promise(in_list->items == std::vector<T>{*got, *got}, "a list item equals the object");
  promise(in_list->issues.size() == 2 * issues.size(), "a list item has the object's issues");
  promise(event->object == *got && event->meta == got->meta, "an event equals its object");
}

void service(std::string_view raw) { object<Service>("Service", raw); }
void slice(std::string_view raw) { object<EndpointSlice>("EndpointSlice", raw); }
void node(std::string_view raw) { object<Node>("Node", raw); }
void service_cidr(std::string_view raw) { object<ServiceCidr>("ServiceCIDR", raw); }

template <typename T>
void event(std::string_view frame) {
  fuzz::promise_event(protobuf::decode_watch_event<T>(frame));
}

void status(std::string_view body) {
  if (const auto got = protobuf::decode_status(body); !got) {
    promise_plain(got.error());
  }
}

void frames(std::string_view input) {
  fuzz::promise_frames<protobuf::Framer>(
      input, [](const std::string& frame) { event<EndpointSlice>(frame); });
}

using Target = void (*)(std::string_view);
constexpr Target kTargets[] = {
    &list<Service>,
    &list<EndpointSlice>,
    &list<Node>,
    &list<ServiceCidr>,
    &event<Service>,
    &event<EndpointSlice>,
    &event<Node>,
    &event<ServiceCidr>,
    &service,
    &slice,
    &node,
    &service_cidr,
    &status,
    &frames,
};

}  // namespace
}  // namespace shunt::kube

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  shunt::kube::kTargets[data[0] % std::size(shunt::kube::kTargets)](input);
  return 0;
}
