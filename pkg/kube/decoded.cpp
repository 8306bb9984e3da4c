#include "kube/decoded.h"

#include <utility>

#include "kube/findings.h"

namespace shunt::kube {

std::optional<EventType> parse_event_type(std::string_view text) {
  static constexpr std::pair<std::string_view, EventType> kTypes[] = {
      {"ADDED", EventType::Added},
      {"MODIFIED", EventType::Modified},
      {"DELETED", EventType::Deleted},
      {"BOOKMARK", EventType::Bookmark},
      {"ERROR", EventType::Error},
  };
  for (const auto& [name, type] : kTypes) {
    if (name == text) {
      return type;
    }
  }
  return std::nullopt;
}

std::vector<DecodeIssue> issues_of(
    const Findings& findings,
    bool with_remarks,
    const ObjectKey& key,
    const std::string& nameless) {
  std::vector<DecodeIssue> issues;
  if (!findings.mistake && (findings.remarks.empty() || !with_remarks)) {
    return issues;
  }
  const std::string name = key.name.empty() ? nameless : to_string(key);
  if (findings.mistake) {
    issues.push_back({.object = name, .what = *findings.mistake, .object_lost = true});
    return issues;
  }
  for (const std::string& remark : findings.remarks) {
    issues.push_back({.object = name, .what = remark, .object_lost = false});
  }
  return issues;
}

std::string excerpt(std::string_view foreign, std::size_t limit) {
  std::string out(foreign.substr(0, limit));
  for (char& c : out) {
    if (c < ' ' || c > '~') {
      c = '?';
    }
  }
  if (foreign.size() > limit) {
    out += "...";
  }
  return out;
}

}  // namespace shunt::kube
