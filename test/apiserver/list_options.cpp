#include "test/apiserver/list_options.h"

#include <fmt/format.h>

#include <charconv>

#include "test/apiserver/identifiers.h"
#include "test/apiserver/json.h"

namespace shunt::test_api {
namespace {

constexpr std::string_view kForbidden = "FieldValueForbidden";
constexpr std::string_view kNotSupported = "FieldValueNotSupported";
constexpr std::string_view kMatch = "resourceVersionMatch";

template <typename T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end ? std::optional(value) : std::nullopt;
}

Status forbidden_field(std::string_view field, const std::string& why) {
  return invalid_options(field, kForbidden, "Forbidden: " + why);
}

std::optional<Status> check_match_of_list(const ListOptions& options, const std::string& match) {
  if (match.empty()) {
    return std::nullopt;
  }
  if (options.version_text.empty()) {
    return forbidden_field(
        kMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (!options.continue_token.empty()) {
    return forbidden_field(kMatch, "resourceVersionMatch is forbidden when continue is provided");
  }
  if (match != "Exact" && match != "NotOlderThan") {
    return invalid_options(
        kMatch,
        kNotSupported,
        fmt::format(
            R"(Unsupported value: "{}": supported values: "Exact", "NotOlderThan", "")", match));
  }
  if (match == "Exact" && options.version_text == "0") {
    return forbidden_field(
        kMatch, R"(resourceVersionMatch "exact" is forbidden for resourceVersion "0")");
  }
  return std::nullopt;
}

std::optional<Status> check_watch(
    const std::string& match, const std::string& initial_events, bool streaming_lists) {
  if (!initial_events.empty()) {
    if (match != "NotOlderThan") {
      return forbidden_field(
          kMatch, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if (!streaming_lists) {
      return forbidden_field(
          "sendInitialEvents",
          "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
    }
  } else if (!match.empty()) {
    return forbidden_field(
        kMatch, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  }
  return std::nullopt;
}

std::optional<Status> read_numbers(const Request& request, ListOptions& options) {
  if (!options.version_text.empty()) {
    const auto version = parse_number<std::uint64_t>(options.version_text);
    if (!version) {
      return bad_request(
          fmt::format("resourceVersion: Invalid value: \"{}\"", options.version_text));
    }
    options.version = *version;
  }
  const std::string limit = request.query_value("limit");
  if (!limit.empty()) {
    options.limit = parse_number<std::size_t>(limit).value_or(0);
  }
  const std::string timeout = request.query_value("timeoutSeconds");
  if (!timeout.empty()) {
    options.timeout_seconds = parse_number<int>(timeout);
  }
  return std::nullopt;
}

}  // namespace

Answer<ListOptions> parse_list_options(const Request& request, bool streaming_lists) {
  ListOptions options;
  options.watch = request.query_flag("watch");
  options.labels = request.query_value("labelSelector");
  options.fields = request.query_value("fieldSelector");
  options.version_text = request.query_value("resourceVersion");
  options.continue_token = request.query_value("continue");
  options.bookmarks = request.query_flag("allowWatchBookmarks");
  if (auto status = read_numbers(request, options)) {
    return refuse(std::move(*status));
  }
  const std::string match = request.query_value("resourceVersionMatch");
  const std::string initial_events = request.query_value("sendInitialEvents");
  if (options.watch) {
    if (auto status = check_watch(match, initial_events, streaming_lists)) {
      return refuse(std::move(*status));
    }
    options.send_initial_events = request.query_flag("sendInitialEvents");
    // The server's own defaulting: a watch from nowhere is a streaming list where those exist.
    if (initial_events.empty() && options.any_version() && streaming_lists) {
      options.send_initial_events = true;
    }
    return options;
  }
  if (!initial_events.empty()) {
    return refuse(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  if (auto status = check_match_of_list(options, match)) {
    return refuse(std::move(*status));
  }
  options.exact = match == "Exact";
  if (!options.continue_token.empty() && !options.any_version()) {
    return refuse(bad_request("specifying resource version is not allowed when using continue"));
  }
  return options;
}

std::string to_text(const ContinueToken& token) {
  Json json = Json::object();
  json["v"] = "meta.k8s.io/v1";
  json["rv"] = token.version;
  json["start"] = "/" + token.start;
  return base64url(json.dump());
}

std::optional<ContinueToken> parse_continue(const std::string& text) {
  bool ok = false;
  const std::string decoded = base64url_decoded(text, ok);
  const Json json = Json::parse(ok ? decoded : "", nullptr, false);
  if (json.is_discarded() || text_at(json, "v") != "meta.k8s.io/v1" || !json.contains("rv") ||
      !json["rv"].is_number_unsigned()) {
    return std::nullopt;
  }
  const std::string start = text_at(json, "start");
  return ContinueToken{json["rv"].get<std::uint64_t>(), start.substr(start.empty() ? 0 : 1)};
}

}  // namespace shunt::test_api
