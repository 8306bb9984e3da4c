// One Event of the group events.k8s.io/v1 as we write it (spec/conntrack-and-metrics.md §6). Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.h"
#include "kube/notice.h"

namespace shunt::events {

using WallTime = std::chrono::system_clock::time_point;

// The API server refuses longer ones; in bytes.
inline constexpr std::size_t kMaxNote = 1024;
inline constexpr std::size_t kMaxWord = 128;  // reason, action, instance

// Of the same happening, seen again and again.
struct Series {
  std::int64_t count = 0;
  WallTime last_observed;
  bool operator==(const Series&) const = default;
};

struct Event {
  std::string name;
  kube::Notice notice;
  WallTime time;                 // the first time
  std::optional<Series> series;  // nothing while it was seen once
  bool operator==(const Event&) const = default;
};

// Who reports.
struct Reporter {
  std::string controller = "kube-shunt";
  std::string instance = "kube-shunt";
};
Reporter reporter_on(std::string_view hostname);  // instance kube-shunt-<hostname>

// The namespace in which an Event about this object is kept.
std::string event_namespace(const kube::Notice& notice);

// <object>.<nanoseconds in hex>; where that is no name the API takes, a random one.
std::string event_name(const kube::Notice& notice, WallTime now, const Random& random);

// JSON. `note` is cut to kMaxNote and is valid UTF-8 whatever the notice says: its text may come
// from a hostile object.
std::string create_body(const Event& event, const Reporter& reporter);
std::string series_patch(const Series& series);  // a strategic merge patch

// The longest beginning of `text` that is not larger and cuts no character; bytes that are no UTF-8
// become '?'.
std::string clean_text(std::string_view text, std::size_t limit);

}  // namespace shunt::events
