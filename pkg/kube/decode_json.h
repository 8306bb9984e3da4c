// JSON bytes of the API server -> the structs of this folder. The one home of nlohmann's SAX
// interface: no DOM is built, unknown fields are skipped, and one bad object loses only itself.
//
// Pure: no I/O, no log, no global. T is Service, EndpointSlice, Node or ServiceCidr.
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

template <typename T>
struct DecodedList {
  ListMeta meta;
  std::vector<T> items;
  std::vector<DecodeIssue> issues;
};

// A whole list body. Errors only when the body is not JSON or not a list (Errc::Invalid).
template <typename T>
Result<DecodedList<T>> decode_list(std::string_view body);

// One object, as a file or a test has it.
template <typename T>
Result<T> decode_object(std::string_view body, std::vector<DecodeIssue>* issues = nullptr);

// metav1.Status, the body of errors and of ERROR events (spec/api-objects.md §8.3).
struct ApiStatus {
  int code = 0;
  std::string reason;  // "Expired", "Gone", "TooManyRequests"...
  std::string message;
  std::vector<std::string> cause_reasons;  // details.causes[].reason
  std::optional<int> retry_after_seconds;  // details.retryAfterSeconds
};
Result<ApiStatus> decode_status(std::string_view body);

enum class EventType : std::uint8_t { Added, Modified, Deleted, Bookmark, Error };

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

// One frame of a watch stream. Errors (Errc::Invalid) when it is not JSON, not an event, or of an
// unknown type.
template <typename T>
Result<WatchEvent<T>> decode_watch_event(std::string_view frame);

// Cuts a stream of concatenated JSON objects into frames; the separator between them is not
// guaranteed (spec/api-objects.md §2.2). Bytes outside an object other than white space are an
// error, as is a frame above the limit.
class JsonFramer {
 public:
  static constexpr std::size_t kMaxFrame = std::size_t{16} << 20;
  explicit JsonFramer(std::size_t max_frame = kMaxFrame) : max_frame_(max_frame) {}

  // Calls `on_frame` for every frame that `chunk` completes; the view is valid during the call
  // only. `on_frame` returns false to stop early (the rest of the chunk is dropped). After an error
  // the framer is unusable.
  Result<> feed(std::string_view chunk, const std::function<bool(std::string_view)>& on_frame);

  // Bytes of an unfinished frame.
  std::size_t pending() const { return buffer_.size(); }

 private:
  std::size_t max_frame_;
  std::string buffer_;
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

extern template Result<DecodedList<Service>> decode_list<Service>(std::string_view);
extern template Result<DecodedList<EndpointSlice>> decode_list<EndpointSlice>(std::string_view);
extern template Result<DecodedList<Node>> decode_list<Node>(std::string_view);
extern template Result<DecodedList<ServiceCidr>> decode_list<ServiceCidr>(std::string_view);

}  // namespace shunt::kube
