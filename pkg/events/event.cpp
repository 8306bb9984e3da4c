#include "events/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "kube/utf8.h"

namespace shunt::events {
namespace {

using Json = nlohmann::ordered_json;
using Kind = kube::Notice::Kind;

constexpr std::size_t kMaxName = 253;

struct KindName {
  const char* api_version;
  const char* kind;
};

KindName name_of(Kind kind) {
  switch (kind) {
    case Kind::Service:
      return {"v1", "Service"};
    case Kind::EndpointSlice:
      return {"discovery.k8s.io/v1", "EndpointSlice"};
    case Kind::Node:
      return {"v1", "Node"};
    case Kind::ServiceCidr:
      return {"networking.k8s.io/v1", "ServiceCIDR"};
  }
  return {"v1", "Service"};
}

std::int64_t unix_nanos(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// metav1.MicroTime.
std::string micro_time(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds);
  const std::time_t unix_time = std::chrono::system_clock::to_time_t(seconds);
  std::tm utc{};
  (void)::gmtime_r(&unix_time, &utc);  // fails only for years beyond an int
  return fmt::format(
      "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
      utc.tm_year + 1900,
      utc.tm_mon + 1,
      utc.tm_mday,
      utc.tm_hour,
      utc.tm_min,
      utc.tm_sec,
      micros.count());
}

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// RFC 1123: labels of letters, digits and dashes that neither begin nor end with a dash.
bool is_subdomain(std::string_view text) {
  if (text.empty() || text.size() > kMaxName) {
    return false;
  }
  char before = '.';
  for (const char c : text) {
    const bool good =
        is_alphanumeric(c) || (c == '-' && before != '.') || (c == '.' && is_alphanumeric(before));
    if (!good) {
      return false;
    }
    before = c;
  }
  return is_alphanumeric(before);
}

std::string random_name(const Random& random) {
  std::string out = "event-";
  for (int i = 0; i < 4; ++i) {
    out += fmt::format("{:08x}", static_cast<std::uint32_t>(random() * 4294967296.0));
  }
  return out;
}

Json series_json(const Series& series) {
  return {{"count", series.count}, {"lastObservedTime", micro_time(series.last_observed)}};
}

// Foreign text in it is clean already; `replace` is for what is not expected.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Reporter reporter_on(std::string_view hostname) {
  Reporter out;
  out.instance = clean_text(out.controller + "-" + std::string(hostname), kMaxWord);
  return out;
}

std::string event_namespace(const kube::Notice& notice) {
  return notice.object.name_space.empty() ? "default" : notice.object.name_space;
}

std::string event_name(const kube::Notice& notice, WallTime now, const Random& random) {
  std::string name = fmt::format("{}.{:x}", notice.object.name, unix_nanos(now));
  return is_subdomain(name) ? name : random_name(random);
}

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    std::size_t size = 1;
    while (size < 4 && size < text.size() && !kube::is_utf8(text.substr(0, size))) {
      ++size;
    }
    const bool good = kube::is_utf8(text.substr(0, size));
    size = good ? size : 1;
    if (out.size() + size > limit) {
      break;
    }
    out.append(good ? text.substr(0, size) : "?");
    text.remove_prefix(size);
  }
  return out;
}

std::string create_body(const Event& event, const Reporter& reporter) {
  const kube::Notice& notice = event.notice;
  const KindName kind = name_of(notice.kind);
  Json regarding{{"kind", kind.kind}};
  if (!notice.object.name_space.empty()) {
    regarding["namespace"] = notice.object.name_space;
  }
  regarding["name"] = notice.object.name;
  if (!notice.uid.empty()) {
    regarding["uid"] = notice.uid;
  }
  regarding["apiVersion"] = kind.api_version;
  Json out{
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", event.name}, {"namespace", event_namespace(notice)}}},
      {"eventTime", micro_time(event.time)}};
  if (event.series) {
    out["series"] = series_json(*event.series);
  }
  out["reportingController"] = reporter.controller;
  out["reportingInstance"] = clean_text(reporter.instance, kMaxWord);
  out["action"] = clean_text(notice.action, kMaxWord);
  out["reason"] = clean_text(notice.reason, kMaxWord);
  out["regarding"] = std::move(regarding);
  out["note"] = clean_text(notice.note, kMaxNote);
  out["type"] = notice.warning ? "Warning" : "Normal";
  return text_of(out);
}

std::string series_patch(const Series& series) {
  return text_of(Json{{"series", series_json(series)}});
}

}  // namespace shunt::events
