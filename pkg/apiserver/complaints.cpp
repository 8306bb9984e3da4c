#include "apiserver/complaints.h"

#include <algorithm>

namespace shunt::apiserver {
namespace {

// DecodeIssue::object is also "items[17]" and the like, and a name may be anything that a broken
// object says it is.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

bool is_namespaced(kube::Notice::Kind kind) {
  return kind == kube::Notice::Kind::Service || kind == kube::Notice::Kind::EndpointSlice;
}

std::optional<kube::ObjectKey> key_of(std::string_view text, bool namespaced) {
  const auto slash = text.find('/');
  if ((slash != std::string_view::npos) != namespaced) {
    return std::nullopt;
  }
  const std::string_view name_space = namespaced ? text.substr(0, slash) : std::string_view();
  const std::string_view name = namespaced ? text.substr(slash + 1) : text;
  if (!is_name(name) || (namespaced && !is_name(name_space))) {
    return std::nullopt;
  }
  return kube::ObjectKey{std::string(name_space), std::string(name)};
}

}  // namespace

std::optional<kube::Notice> Complaints::take(const kube::DecodeIssue& issue, std::string_view uid) {
  auto key = key_of(issue.object, is_namespaced(kind_));
  if (!key) {
    return std::nullopt;
  }
  if (in_list_.size() < kMax) {
    in_list_.emplace(issue.object, issue.what);
  }
  if (told_.size() >= kMax || !told_.emplace(issue.object, issue.what).second) {
    return std::nullopt;
  }
  return kube::Notice{
      .warning = true,
      .kind = kind_,
      .object = std::move(*key),
      .uid = std::string(uid),
      .reason = "CannotRead",
      .action = "Read",
      .note = (issue.object_lost ? "set aside: " : "a part of it set aside: ") + issue.what};
}

}  // namespace shunt::apiserver
