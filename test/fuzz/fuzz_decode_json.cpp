// The JSON decoders and the framer against arbitrary bytes. The first byte chooses the target (see
// kTargets), the rest is what it reads. Crashes and sanitizer reports are bugs, and so is a broken
// promise of decode_json.h: those abort in `promise`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kube/decode_json.h"
#include "promises.h"

namespace shunt::kube {
namespace {

using fuzz::lost;
using fuzz::promise;
using fuzz::promise_plain;

template <typename T>
void list(std::string_view body) {
  const auto got = decode_list<T>(body);
  if (!got) {
    promise_plain(got.error());
    return;
  }
  (void)lost(got->issues);
  const auto again = decode_list<T>(body);
  promise(again && again->items == got->items, "decoding has no memory");
}

template <typename T>
void object(std::string_view body) {
  std::vector<DecodeIssue> issues;
  const auto got = decode_object<T>(body, &issues);
  promise(lost(issues) == 0, "an object that is lost is an error");
  if (!got) {
    promise_plain(got.error());
    return;
  }
  // The same object must come out of a list and of an event, whatever the order of its keys.
  std::string text(body);
  const auto in_list = decode_list<T>("{\"kind\":\"List\",\"items\":[" + text + "," + text + "]}");
  promise(in_list.has_value(), "an object fits in a list");
  promise(in_list->items == std::vector<T>{*got, *got}, "a list item equals the object");
  promise(in_list->issues.size() == 2 * issues.size(), "a list item has the object's issues");
  const auto early = decode_watch_event<T>("{\"type\":\"ADDED\",\"object\":" + text + "}");
  const auto late = decode_watch_event<T>("{\"object\":" + text + ",\"type\":\"ADDED\"}");
  promise(early.has_value() == late.has_value(), "an event is one in either order");
  if (early) {
    promise(early->object == *got && late->object == *got, "an event equals its object");
    promise(early->meta == got->meta, "an event has the metadata of its object");
  }
}

template <typename T>
void event(std::string_view frame) {
  fuzz::promise_event(decode_watch_event<T>(frame));
}

void status(std::string_view body) {
  const auto got = decode_status(body);
  if (!got) {
    promise_plain(got.error());
  }
}

void frames(std::string_view input) {
  fuzz::promise_frames<JsonFramer>(input, [](const std::string& frame) {
    promise(frame.front() == '{' && frame.back() == '}', "a frame is an object");
    event<Service>(frame);
  });
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
    &object<Service>,
    &object<EndpointSlice>,
    &object<Node>,
    &object<ServiceCidr>,
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
