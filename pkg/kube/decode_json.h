// JSON bytes of the API server -> the structs of this folder. The one home of nlohmann's SAX
// interface: no DOM is built, unknown fields are skipped, and one bad object loses only itself.
//
// Pure: no I/O, no log, no global. T is Service, EndpointSlice, Node or ServiceCidr.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/decoded.h"

namespace shunt::kube {

// A whole list body, as json_list.h reads one that is still arriving.
template <typename T>
Result<DecodedList<T>> decode_list(std::string_view body);

// One object, as a file or a test has it.
template <typename T>
Result<T> decode_object(std::string_view body, std::vector<DecodeIssue>* issues = nullptr);

// A metav1.Status.
Result<ApiStatus> decode_status(std::string_view body);

// One frame of a watch stream. Errors (Errc::Invalid) when it is not JSON, not an event, or of an
// unknown type.
template <typename T>
Result<WatchEvent<T>> decode_watch_event(std::string_view frame);

// Cuts a stream of concatenated JSON objects into frames; the separator between them is not
// guaranteed (spec/api-objects.md §2.2). Bytes outside an object other than white space are an
// error, as is a frame above the limit.
class JsonFramer {
 public:
  static constexpr std::size_t kMaxFrame = kMaxObject;
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
