#include "test/apiserver/status.h"

#include <fmt/format.h>

#include <map>

namespace shunt::test_api {
namespace {

Json named_details(const Resource& resource, std::string_view name) {
  Json details = Json::object();
  details["name"] = name;
  if (!resource.group.empty()) {
    details["group"] = resource.group;
  }
  details["kind"] = resource.plural;
  return details;
}

// "services" or "endpointslices.discovery.k8s.io", as apimachinery prints a GroupResource.
std::string group_resource(const Resource& resource) {
  return resource.group.empty() ? std::string(resource.plural)
                                : fmt::format("{}.{}", resource.plural, resource.group);
}

Json cause(std::string_view reason, std::string_view message, std::string_view field) {
  Json out = Json::object();
  out["reason"] = reason;
  out["message"] = message;
  if (!field.empty()) {
    out["field"] = field;
  }
  return out;
}

}  // namespace

Json Status::to_json() const {
  Json out = Json::object();
  out["kind"] = "Status";
  out["apiVersion"] = "v1";
  out["metadata"] = Json::object();
  out["status"] = code < 400 ? "Success" : "Failure";
  if (!message.empty()) {
    out["message"] = message;
  }
  if (!reason.empty()) {
    out["reason"] = reason;
  }
  if (!details.is_null()) {
    out["details"] = details;
  }
  if (code >= 400) {
    out["code"] = code;
  }
  return out;
}

Status unauthorized() { return {401, "Unauthorized", "Unauthorized", nullptr}; }

Status forbidden(std::string_view user, std::string_view verb, const Target& target) {
  Json details = Json::object();
  if (!target.name.empty()) {
    details["name"] = target.name;
  }
  if (!target.group.empty()) {
    details["group"] = target.group;
  }
  details["kind"] = target.plural;
  const std::string resource =
      target.group.empty() ? target.plural : fmt::format("{}.{}", target.plural, target.group);
  const std::string object =
      target.name.empty() ? resource : fmt::format("{} \"{}\"", resource, target.name);
  const std::string scope = target.ns.empty() ? "at the cluster scope"
                                              : fmt::format("in the namespace \"{}\"", target.ns);
  return {
      403,
      "Forbidden",
      fmt::format(
          "{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}",
          object,
          user,
          verb,
          target.plural,
          target.group,
          scope),
      std::move(details)};
}

Status path_not_found() {
  return {404, "NotFound", "the server could not find the requested resource", Json::object()};
}

Status not_found(const Resource& resource, std::string_view name) {
  return {
      404,
      "NotFound",
      fmt::format("{} \"{}\" not found", group_resource(resource), name),
      named_details(resource, name)};
}

Status already_exists(const Resource& resource, std::string_view name) {
  return {
      409,
      "AlreadyExists",
      fmt::format("{} \"{}\" already exists", group_resource(resource), name),
      named_details(resource, name)};
}

Status conflict(const Resource& resource, std::string_view name) {
  return {
      409,
      "Conflict",
      fmt::format(
          "Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply "
          "your changes to the latest version and try again",
          group_resource(resource),
          name),
      named_details(resource, name)};
}

Status method_not_allowed() {
  return {
      405,
      "MethodNotAllowed",
      "the server does not allow this method on the requested resource",
      Json::object()};
}

Status bad_request(std::string message) { return {400, "BadRequest", std::move(message), nullptr}; }

Status not_acceptable() {
  return {
      406,
      "NotAcceptable",
      "only the following media types are accepted: application/json",
      nullptr};
}

Status unsupported_media_type() {
  return {
      415,
      "UnsupportedMediaType",
      "the body of the request was in an unknown format - accepted media types include: "
      "application/json, application/yaml, application/merge-patch+json, "
      "application/strategic-merge-patch+json",
      nullptr};
}

Status invalid_options(
    std::string_view field, std::string_view value_reason, const std::string& message) {
  Json details = Json::object();
  details["group"] = "meta.k8s.io";
  details["kind"] = "ListOptions";
  details["causes"] = Json::array({cause(value_reason, message, field)});
  return {
      422,
      "Invalid",
      fmt::format("ListOptions.meta.k8s.io \"\" is invalid: {}: {}", field, message),
      std::move(details)};
}

Status invalid_object(const Resource& resource, std::string_view name, const std::string& message) {
  Json details = named_details(resource, name);
  details["kind"] = resource.kind;
  return {
      422,
      "Invalid",
      fmt::format("{} \"{}\" is invalid: {}", resource.kind, name, message),
      std::move(details)};
}

Status expired(std::string message) { return {410, "Expired", std::move(message), nullptr}; }

Status expired_watch(std::uint64_t asked, std::uint64_t oldest) {
  return expired(fmt::format("too old resource version: {} ({})", asked, oldest));
}

Status expired_continue() {
  return expired(
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter.");
}

Status version_too_large(std::uint64_t asked, std::uint64_t current) {
  Json details = Json::object();
  details["causes"] =
      Json::array({cause("ResourceVersionTooLarge", "Too large resource version", "")});
  details["retryAfterSeconds"] = 1;
  return {
      504,
      "Timeout",
      fmt::format("Timeout: Too large resource version: {}, current: {}", asked, current),
      std::move(details),
      1};
}

Status generic(int code) {
  static const std::map<int, std::pair<std::string, std::string>> known{
      {400, {"BadRequest", "the server rejected our request for an unknown reason"}},
      {401, {"Unauthorized", "Unauthorized"}},
      {403, {"Forbidden", "forbidden: not allowed by a test fault"}},
      {404, {"NotFound", "the server could not find the requested resource"}},
      {409, {"Conflict", "the object has been modified"}},
      {410, {"Expired", "The resourceVersion for the provided watch is too old."}},
      {422, {"Invalid", "the request is invalid"}},
      {429, {"TooManyRequests", "Too many requests, please try again later."}},
      {500, {"InternalError", "Internal error occurred: a test fault"}},
      {503, {"ServiceUnavailable", "the server is currently unable to handle the request"}},
      {504, {"Timeout", "Timeout: request did not complete within the allotted timeout"}}};
  const auto found = known.find(code);
  if (found == known.end()) {
    return {
        code,
        "Unknown",
        "an error on the server has prevented the request from succeeding",
        nullptr};
  }
  return {code, found->second.first, found->second.second, nullptr};
}

}  // namespace shunt::test_api
