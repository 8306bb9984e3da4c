#include <algorithm>

#include "kube/decode_protobuf.h"

namespace shunt::kube::protobuf {

std::size_t Framer::frame_size() const {
  std::size_t size = 0;
  for (const unsigned char byte : length_) {
    size = size << 8U | byte;
  }
  return size;
}

Result<> Framer::feed(
    std::string_view chunk, const std::function<bool(std::string_view)>& on_frame) {
  for (;;) {
    while (length_bytes_ < length_.size() && !chunk.empty()) {
      length_[length_bytes_++] = static_cast<unsigned char>(chunk.front());
      chunk.remove_prefix(1);
    }
    if (length_bytes_ < length_.size()) {
      return {};
    }
    const std::size_t size = frame_size();
    if (size > max_frame_) {
      return fail(Errc::Invalid, "watch stream: an event above the limit");
    }
    const std::size_t taken = std::min(size - buffer_.size(), chunk.size());
    const std::string_view tail = chunk.substr(0, taken);
    if (buffer_.size() + taken < size) {
      buffer_ += tail;
      return {};
    }
    chunk.remove_prefix(taken);
    length_bytes_ = 0;
    bool go_on = true;
    if (buffer_.empty()) {
      go_on = on_frame(tail);
    } else {
      buffer_ += tail;
      go_on = on_frame(buffer_);
      buffer_.clear();
    }
    if (!go_on) {
      return {};
    }
  }
}

}  // namespace shunt::kube::protobuf
