#include "apiserver/watch_rules.h"

#include <algorithm>
#include <cerrno>

namespace shunt::apiserver {
namespace {

// A server may ask for a day; we would look dead for a day.
constexpr std::chrono::seconds kMaxRetryAfter{30};

constexpr int kMaxIncomplete = 3;

}  // namespace

NextStep after_streaming_list(const StreamEnd& end, bool version_was_sent, int incomplete_before) {
  if (!end.error) {
    // Something on the way cannot stream, or a server that does not know streaming lists sends
    // the objects and never the end. client-go would try for ever.
    if (end.short_and_empty() || incomplete_before >= kMaxIncomplete - 1) {
      return NextStep::ClassicList;
    }
    // client-go starts again at once in either case; a server that breaks off early every time
    // would then send its cluster over and over without a pause.
    return end.lasted < std::chrono::seconds(1) ? NextStep::ReopenAfterDelay : NextStep::Reopen;
  }
  switch (end.error->failure) {
    case ApiFailure::ConnectionRefused:
    case ApiFailure::TooManyRequests:
      return NextStep::ReopenAfterDelay;
    case ApiFailure::Expired:
    case ApiFailure::TooLargeVersion:
      return version_was_sent ? NextStep::ReopenWithoutVersion : NextStep::ClassicList;
    default:
      return NextStep::ClassicList;
  }
}

NextStep after_watch(const StreamEnd& end) {
  if (!end.error) {
    return end.short_and_empty() ? NextStep::LeaveCycle : NextStep::Reopen;
  }
  switch (end.error->failure) {
    case ApiFailure::ConnectionRefused:
    case ApiFailure::TooManyRequests:
      return NextStep::ReopenAfterDelay;
    default:
      return NextStep::LeaveCycle;
  }
}

std::optional<Millis> resend_delay(const Exchange& exchange, bool is_watch) {
  if (exchange.head) {
    const int status = exchange.head->status;
    if ((status == 429 || status >= 500) && exchange.head->retry_after) {
      return std::clamp(*exchange.head->retry_after, std::chrono::seconds(1), kMaxRetryAfter);
    }
    return std::nullopt;
  }
  if (exchange.end) {
    return std::nullopt;
  }
  const int error = exchange.end.error().sys_errno;
  if (error == ECONNRESET || error == EPIPE || (is_watch && error == ETIMEDOUT)) {
    return std::chrono::seconds(1);
  }
  return std::nullopt;
}

}  // namespace shunt::apiserver
