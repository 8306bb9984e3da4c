// What every decoder promises about what it says. A broken promise aborts: the fuzzer's finding.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kube/decoded.h"
#include "kube/testing/pieces.h"

namespace shunt::fuzz {

inline void promise(bool kept, const char* what) {
  if (!kept) {
    (void)std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
  }
}

inline bool is_one_printable_line(std::string_view text) {
  for (const char c : text) {
    if (c == '\n' || c == '\0') {
      return false;
    }
  }
  return true;
}

inline void promise_plain(const kube::DecodeIssue& issue) {
  promise(!issue.object.empty() && !issue.what.empty(), "an issue names its object and field");
  promise(is_one_printable_line(issue.what), "an issue is one line");
}

// How many objects the issues say are lost.
inline std::size_t lost(const std::vector<kube::DecodeIssue>& issues) {
  std::size_t count = 0;
  for (const kube::DecodeIssue& issue : issues) {
    promise_plain(issue);
    count += issue.object_lost ? 1 : 0;
  }
  return count;
}

inline void promise_plain(const Error& error) {
  promise(error.code == Errc::Invalid, "decoders fail with Errc::Invalid");
  promise(is_one_printable_line(error.what) && error.what.size() < 1000, "an error is one line");
}

// A watch event of either format.
template <typename T>
void promise_event(const Result<kube::WatchEvent<T>>& got) {
  if (!got) {
    promise_plain(got.error());
    return;
  }
  const std::size_t count = lost(got->issues);
  const bool has_object =
      got->type != kube::EventType::Bookmark && got->type != kube::EventType::Error;
  promise(!got->object || has_object, "bookmarks and errors have no object");
  promise(!has_object || got->object.has_value() == (count == 0), "an issue says why");
  promise(!got->initial_events_end || got->type == kube::EventType::Bookmark, "a bookmark ends");
}

// A stream that is cut into frames. The first byte of `input` is the size of the chunks; `each`
// gets the frames.
template <typename Framer, typename Each>
void promise_frames(std::string_view input, const Each& each) {
  using kube::testing::cut;
  using kube::testing::Framed;
  if (input.empty()) {
    return;
  }
  const std::size_t chunk_size = static_cast<unsigned char>(input.front()) % 64 + 1U;
  const std::string_view stream = input.substr(1);
  for (const std::size_t max_frame : {Framer::kMaxFrame, std::size_t{32}}) {
    const Framed whole = cut<Framer>(stream, stream.size(), max_frame);
    promise(cut<Framer>(stream, chunk_size, max_frame) == whole, "frames do not depend on chunks");
    promise(cut<Framer>(stream, 1, max_frame) == whole, "frames do not depend on chunks");
    for (const std::string& frame : whole.frames) {
      promise(frame.size() <= max_frame, "a frame keeps to the limit");
      each(frame);
    }
  }
}

}  // namespace shunt::fuzz
