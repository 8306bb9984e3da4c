// What the decoders of this folder yield, whatever the bytes were: JSON (decode_json) or protobuf
// (decode_protobuf). T is Service, EndpointSlice, Node or ServiceCidr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/object_key.h"
#include "kube/service.h"

namespace shunt::kube {

// A field that is not what the API says it is. The object it belongs to is lost (or, for an
// endpoint address that is no IP address, only that endpoint), nothing else.
struct DecodeIssue {
  std::string object;  // "namespace/name" as far as it was known, "items[17]" otherwise
  std::string what;    // "spec.ports[0].port: expected a number, got a string"
  bool object_lost = true;
};

struct ListMeta {
  std::string resource_version;
  std::string continue_token;  // "" on the last page
};

// No object of the API is nearly as large; a watch event or a list item above it is not kept in
// memory.
inline constexpr std::size_t kMaxObject = std::size_t{16} << 20;

// Where the parts of a list go while it arrives.
template <typename T>
struct ListSink {
  std::function<void(T&&)> on_item;
  std::function<void(DecodeIssue&&)> on_issue;
};

// A list that is decoded while it arrives: it holds one unfinished item at most, however long the
// list is. Whether it was a whole list of the right kind is known at its end, so what the sink got
// counts only when finish() says so.
template <typename T>
class ListDecoder {
 public:
  virtual ~ListDecoder() = default;
  // Errors (Errc::Invalid) when what came is the beginning of no list; the decoder is then
  // unusable. An item that cannot be decoded, or is larger than the limit, is an issue and loses
  // only itself.
  virtual Result<> feed(std::string_view piece) = 0;
  // The body has ended. Errors when it was cut short or is no list.
  virtual Result<ListMeta> finish() = 0;
};

template <typename T>
struct DecodedList {
  ListMeta meta;
  std::vector<T> items;
  std::vector<DecodeIssue> issues;
};

// metav1.Status, the body of errors and of ERROR events (spec/api-objects.md §8.3).
struct ApiStatus {
  int code = 0;
  std::string reason;  // "Expired", "Gone", "TooManyRequests"...
  std::string message;
  std::vector<std::string> cause_reasons;  // details.causes[].reason
  std::optional<int> retry_after_seconds;  // details.retryAfterSeconds
};

// What a BOOKMARK event carries: an object of the watched kind with nothing but this.
struct Bookmark {
  ObjectMeta meta;
  bool initial_events_end = false;
};
inline constexpr char kInitialEventsEndAnnotation[] = "k8s.io/initial-events-end";

enum class EventType : std::uint8_t { Added, Modified, Deleted, Bookmark, Error };
std::optional<EventType> parse_event_type(std::string_view text);

template <typename T>
struct WatchEvent {
  EventType type = EventType::Error;
  // Added, Modified, Deleted. Nothing when the object could not be decoded: then `issues` says why,
  // and `meta` holds as much of its metadata as was read (a stream goes on from
  // meta.resource_version).
  std::optional<T> object;
  ObjectMeta meta;                  // of the object, also of a Bookmark
  bool initial_events_end = false;  // Bookmark with annotation k8s.io/initial-events-end: "true"
  ApiStatus status;                 // Error
  std::vector<DecodeIssue> issues;
};

// A piece of foreign text as it may stand in a one-line message.
std::string excerpt(std::string_view foreign, std::size_t limit = 64);

}  // namespace shunt::kube
