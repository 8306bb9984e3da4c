// What a reflector does after a watch stream has ended (spec/api-objects.md §8.1, §8.3). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "apiserver/api_error.h"
#include "apiserver/transport.h"

namespace shunt::apiserver {

struct StreamEnd {
  // Nothing: it ended as streams do. The server's timeout, end of file, a broken connection and a
  // stalled stream are all the same to us.
  std::optional<ApiError> error;
  std::uint64_t events = 0;
  Millis lasted{0};

  bool short_and_empty() const { return events == 0 && lasted < std::chrono::seconds(1); }
};

enum class NextStep : std::uint8_t {
  Reopen,
  ReopenAfterDelay,
  ReopenWithoutVersion,
  ClassicList,
  LeaveCycle,  // a delay, then a new cycle
};

// The stream of a streaming list ended before its end bookmark, as `incomplete_before` others did
// in this cycle.
NextStep after_streaming_list(const StreamEnd& end, bool version_was_sent, int incomplete_before);

// A live stream ended; what was delivered stays in force whatever comes next.
NextStep after_watch(const StreamEnd& end);

// client-go sends a request again up to ten times when the server names a time, or when the
// connection broke before the answer began. Nothing: do not send it again.
constexpr int kMaxResends = 10;
std::optional<Millis> resend_delay(const Exchange& exchange, bool is_watch);

}  // namespace shunt::apiserver
