// The JSON decoders and the framer against arbitrary bytes. The first byte chooses the target (see
// kTargets), the rest is what it reads. Crashes and sanitizer reports are bugs, and so is a broken
// promise of decode_json.h: those abort in `promise`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kube/decode_json.h"

namespace shunt::kube {
namespace {

void promise(bool kept, const char* what) {
  if (!kept) {
    (void)std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
  }
}

bool is_one_printable_line(std::string_view text) {
  for (const char c : text) {
    if (c == '\n' || c == '\0') {
      return false;
    }
  }
  return true;
}

// How many objects the issues say are lost.
std::size_t lost(const std::vector<DecodeIssue>& issues) {
  std::size_t count = 0;
  for (const DecodeIssue& issue : issues) {
    promise(!issue.object.empty() && !issue.what.empty(), "an issue names its object and field");
    promise(is_one_printable_line(issue.what), "an issue is one line");
    count += issue.object_lost ? 1 : 0;
  }
  return count;
}

void promise_plain(const Error& error) {
  promise(error.code == Errc::Invalid, "decoders fail with Errc::Invalid");
  promise(is_one_printable_line(error.what) && error.what.size() < 1000, "an error is one line");
}

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
  // Deeper by a level or two than alone: the nesting limit may strike.
  if (in_list) {
    promise(in_list->items == std::vector<T>{*got, *got}, "a list item equals the object");
    promise(in_list->issues.size() == 2 * issues.size(), "a list item has the object's issues");
  } else {
    promise(in_list.error().what.find("deeper") != std::string::npos, "an object fits in a list");
  }
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
  const auto got = decode_watch_event<T>(frame);
  if (!got) {
    promise_plain(got.error());
    return;
  }
  const std::size_t count = lost(got->issues);
  const bool has_object = got->type != EventType::Bookmark && got->type != EventType::Error;
  promise(!got->object || has_object, "bookmarks and errors have no object");
  promise(!has_object || got->object.has_value() == (count == 0), "an issue says why");
  promise(!got->initial_events_end || got->type == EventType::Bookmark, "only a bookmark ends");
}

void status(std::string_view body) {
  const auto got = decode_status(body);
  if (!got) {
    promise_plain(got.error());
  }
}

struct Framed {
  std::vector<std::string> frames;
  bool failed = false;
  std::size_t pending = 0;
  bool operator==(const Framed&) const = default;
};

Framed cut(std::string_view stream, std::size_t chunk_size, std::size_t max_frame) {
  JsonFramer framer(max_frame);
  Framed out;
  while (!stream.empty() && !out.failed) {
    const auto fed = framer.feed(stream.substr(0, chunk_size), [&](std::string_view frame) {
      promise(frame.front() == '{' && frame.back() == '}', "a frame is an object");
      promise(frame.size() <= max_frame, "a frame keeps to the limit");
      out.frames.emplace_back(frame);
      return true;
    });
    out.failed = !fed;
    stream.remove_prefix(std::min(chunk_size, stream.size()));
  }
  out.pending = out.failed ? 0 : framer.pending();
  return out;
}

// Its first byte is the size of the chunks.
void frames(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const std::size_t chunk_size = static_cast<unsigned char>(input.front()) % 64 + 1U;
  const std::string_view stream = input.substr(1);
  for (const std::size_t max_frame : {JsonFramer::kMaxFrame, std::size_t{32}}) {
    const Framed whole = cut(stream, stream.size(), max_frame);
    promise(cut(stream, chunk_size, max_frame) == whole, "frames do not depend on chunks");
    promise(cut(stream, 1, max_frame) == whole, "frames do not depend on chunks");
    for (const std::string& frame : whole.frames) {
      event<Service>(frame);
    }
  }
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
