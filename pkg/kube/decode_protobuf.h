// Protobuf bytes of the API server (application/vnd.kubernetes.protobuf) -> the structs of this
// folder, straight and without generated code: decode_json's functions under the same names, with
// the same results for the same objects. Unknown fields are skipped, and one bad object loses only
// itself.
//
// Pure: no I/O, no log, no global. T is Service, EndpointSlice, Node or ServiceCidr.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/decoded.h"

namespace shunt::kube::protobuf {

// A whole list body, as protobuf_list.h reads one that is still arriving.
template <typename T>
Result<DecodedList<T>> decode_list(std::string_view body);

// One object in its envelope.
template <typename T>
Result<T> decode_object(std::string_view body, std::vector<DecodeIssue>* issues = nullptr);

// A metav1.Status in its envelope.
Result<ApiStatus> decode_status(std::string_view body);
bool has_envelope(std::string_view body);  // "k8s\0": nothing but protobuf begins so

// One frame of a watch stream: a bare WatchEvent, whose object has an envelope. Errors
// (Errc::Invalid) when it is not an event, or of an unknown type.
template <typename T>
Result<WatchEvent<T>> decode_watch_event(std::string_view frame);

// Cuts a watch stream into frames: four bytes of length, the highest first, and as many bytes. A
// frame above the limit is an error.
class Framer {
 public:
  static constexpr std::size_t kMaxFrame = kMaxObject;
  explicit Framer(std::size_t max_frame = kMaxFrame) : max_frame_(max_frame) {}

  // As JsonFramer::feed: the view is valid during the call only, `on_frame` returns false to stop
  // early, and after an error the framer is unusable.
  Result<> feed(std::string_view chunk, const std::function<bool(std::string_view)>& on_frame);

  // Bytes of an unfinished frame, its length included.
  std::size_t pending() const { return length_bytes_ + buffer_.size(); }

 private:
  std::size_t frame_size() const;

  std::size_t max_frame_;
  std::array<unsigned char, 4> length_{};
  std::size_t length_bytes_ = 0;
  std::string buffer_;
};

}  // namespace shunt::kube::protobuf
