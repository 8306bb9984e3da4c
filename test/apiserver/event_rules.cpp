#include "test/apiserver/event_rules.h"

#include "test/apiserver/rfc3339.h"

namespace shunt::test_api {
namespace {

constexpr std::size_t kMaxWord = 128;
constexpr std::size_t kMaxNote = 1024;

std::string wrong_word(const Json& event, const char* field) {
  const std::string text = text_at(event, field);
  if (text.empty()) {
    return std::string(field) + ": Required value";
  }
  return text.size() > kMaxWord ? std::string(field) + ": Invalid value: too long" : "";
}

bool is_time(const Json& object, const char* field) {
  return parse_rfc3339(text_at(object, field)).has_value();
}

std::string wrong_series(const Json& event) {
  const auto series = event.find("series");
  if (series == event.end() || series->is_null()) {
    return "";
  }
  if (!series->is_object() || !series->contains("count") || !(*series)["count"].is_number() ||
      (*series)["count"].get<std::int64_t>() < 2) {
    return "series.count: Invalid value: should be at least 2";
  }
  return is_time(*series, "lastObservedTime") ? "" : "series.lastObservedTime: Required value";
}

std::string wrong_namespace(const Json& event) {
  const auto regarding = event.find("regarding");
  const std::string of_object = regarding == event.end() ? "" : text_at(*regarding, "namespace");
  const std::string of_event = text_at(event["metadata"], "namespace");
  if (of_object.empty() ? of_event != "default" && of_event != "kube-system"
                        : of_event != of_object) {
    return "involvedObject.namespace: Invalid value: does not match event.namespace";
  }
  return "";
}

Json without_series(Json event) {
  event.erase("series");
  event.erase("metadata");
  return event;
}

std::string wrong(const ObjectPtr& before, const Json& event) {
  for (const char* field : {"reportingController", "reportingInstance", "action", "reason"}) {
    if (auto what = wrong_word(event, field); !what.empty()) {
      return what;
    }
  }
  if (!is_time(event, "eventTime")) {
    return "eventTime: Required value";
  }
  const std::string type = text_at(event, "type");
  if (type != "Normal" && type != "Warning") {
    return "type: Invalid value: has invalid value: " + type;
  }
  if (text_at(event, "note").size() > kMaxNote) {
    return "message: Invalid value: can have at most 1024 characters";
  }
  for (const std::string& what : {wrong_series(event), wrong_namespace(event)}) {
    if (!what.empty()) {
      return what;
    }
  }
  if (before && without_series(Json::parse(before->body)) != without_series(event)) {
    return "field is immutable";
  }
  return "";
}

}  // namespace

std::optional<Status> refused_event(
    const Resource& resource, const ObjectPtr& before, const Json& event) {
  const std::string what = wrong(before, event);
  return what.empty()
             ? std::nullopt
             : std::optional(invalid_object(resource, text_at(event["metadata"], "name"), what));
}

}  // namespace shunt::test_api
