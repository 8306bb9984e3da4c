#include <string>

#include "kube/decode_json.h"

namespace shunt::kube {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

// Every byte is looked at once, whatever the chunks: the state carries over, and an unfinished
// frame is appended to the buffer, never scanned again. Braces alone end a frame; whether what lies
// between them is JSON is for the decoder to say.
Result<> JsonFramer::feed(
    std::string_view chunk, const std::function<bool(std::string_view)>& on_frame) {
  std::size_t start = 0;  // of the frame, in this chunk
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const char c = chunk[i];
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '{') {
      if (depth_++ == 0) {
        start = i;
      }
    } else if (depth_ == 0) {
      if (!is_space(c)) {
        return fail(Errc::Invalid, "watch stream: text between events");
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '}' && --depth_ == 0) {
      const std::string_view tail = chunk.substr(start, i + 1 - start);
      if (buffer_.size() + tail.size() > max_frame_) {
        return fail(Errc::Invalid, "watch stream: an event above the limit");
      }
      bool go_on = true;
      if (buffer_.empty()) {
        go_on = on_frame(tail);
      } else {
        buffer_ += tail;
        go_on = on_frame(buffer_);
        buffer_.clear();
      }
      start = i + 1;
      if (!go_on) {
        return {};
      }
    }
  }
  if (depth_ > 0) {
    const std::string_view tail = chunk.substr(start);
    if (buffer_.size() + tail.size() > max_frame_) {
      return fail(Errc::Invalid, "watch stream: an event above the limit");
    }
    buffer_ += tail;
  }
  return {};
}

}  // namespace shunt::kube
