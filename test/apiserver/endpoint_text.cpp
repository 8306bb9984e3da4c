#include "test/apiserver/endpoint_text.h"

#include <fmt/format.h>

#include <charconv>

#include "test/apiserver/json_text.h"
#include "test/apiserver/load_names.h"

namespace shunt::test_api {
namespace {

constexpr std::string_view kTriggerTime = "endpoints.kubernetes.io/last-change-trigger-time";

std::string conditions_text(EndpointConditions conditions) {
  return fmt::format(
      R"({{"ready":{},"serving":{},"terminating":{}}})",
      conditions.ready,
      conditions.serving,
      conditions.terminating);
}

}  // namespace

EndpointConditions conditions_of(std::string_view endpoint) {
  const std::string_view conditions = member(endpoint, "conditions").value_or("{}");
  return {
      member(conditions, "ready") != "false",
      member(conditions, "serving") != "false",
      member(conditions, "terminating") == "true"};
}

std::string with_conditions(std::string_view endpoint, EndpointConditions conditions) {
  return with_member(endpoint, "conditions", conditions_text(conditions));
}

std::string pod_of(std::string_view endpoint) {
  std::string name = text_member(member(endpoint, "targetRef").value_or(""), "name");
  if (name.empty()) {
    Elements addresses(member(endpoint, "addresses").value_or(""));
    name = addresses.next() ? string_value(addresses.value()) : "";
  }
  return name;
}

std::string successor(
    std::string_view endpoint, const std::string& pod, const std::string& address) {
  const std::string_view old = member(endpoint, "targetRef").value_or(R"({"kind":"Pod"})");
  const std::string target = with_member(
      with_member(old, "name", json_string(pod)), "uid", json_string(uid_of(mixed(0, pod))));
  return with_conditions(
      with_member(
          with_member(endpoint, "addresses", array_of({json_string(address)})),
          "targetRef",
          target),
      {false, false, false});
}

std::string stamped(std::string_view slice, UnixTime now) {
  const std::string_view metadata = member(slice, "metadata").value_or("{}");
  const std::string_view old = member(metadata, "generation").value_or("0");
  std::uint64_t generation = 0;
  (void)std::from_chars(old.data(), old.data() + old.size(), generation);  // 0 when it is none
  const std::string annotations = with_member(
      member(metadata, "annotations").value_or("{}"), kTriggerTime, json_string(to_rfc3339(now)));
  return with_member(
      slice,
      "metadata",
      with_member(
          with_member(metadata, "annotations", annotations),
          "generation",
          std::to_string(generation + 1)));
}

std::optional<std::string> with_endpoint_conditions(
    std::string_view slice, std::size_t index, EndpointConditions conditions) {
  const auto endpoints = member(slice, "endpoints");
  Elements each(endpoints.value_or(""));
  for (std::size_t at = 0; each.next(); ++at) {
    if (at == index) {
      const std::string endpoint = with_conditions(each.value(), conditions);
      const auto begin = static_cast<std::size_t>(each.value().data() - slice.data());
      return std::string(slice.substr(0, begin)) + endpoint +
             std::string(slice.substr(begin + each.value().size()));
    }
  }
  return std::nullopt;
}

}  // namespace shunt::test_api
