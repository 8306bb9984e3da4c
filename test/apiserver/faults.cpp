#include "test/apiserver/faults.h"

#include <algorithm>
#include <map>

namespace shunt::test_api {
namespace {

const std::map<std::string, FaultKind>& kinds() {
  static const std::map<std::string, FaultKind> all{
      {"stall", FaultKind::Stall},
      {"cut", FaultKind::Cut},
      {"status", FaultKind::Status},
      {"error-event", FaultKind::ErrorEvent},
      {"malformed-json", FaultKind::MalformedJson},
      {"malformed-protobuf", FaultKind::MalformedProtobuf},
      {"slow", FaultKind::Slow},
      {"refuse", FaultKind::Refuse},
      {"wrong-content", FaultKind::WrongContent},
      {"delay", FaultKind::Delay}};
  return all;
}

std::string kind_name(FaultKind kind) {
  const auto found =
      std::ranges::find_if(kinds(), [&](const auto& entry) { return entry.second == kind; });
  return found == kinds().end() ? "" : found->first;
}

bool covers(const std::string& pattern, std::string_view value) {
  return pattern.empty() || pattern == "any" || pattern == value;
}

// One use of the fault, if any is left.
bool spend(Fault& fault) {
  int left = fault.remaining;
  while (left > 0 && !fault.remaining.compare_exchange_weak(left, left - 1)) {
  }
  return left != 0;
}

Result<FaultPtr> parse_fault(const Json& json) {
  auto fault = std::make_shared<Fault>();
  const auto kind = kinds().find(text_at(json, "kind"));
  if (kind == kinds().end()) {
    return fail(Errc::Invalid, "unknown fault kind \"" + text_at(json, "kind") + "\"");
  }
  const bool protobuf = kind->second == FaultKind::MalformedProtobuf;
  const std::string variant = json.value("variant", "garbage");
  if (protobuf && variant != "length" && variant != "garbage" && variant != "object") {
    return fail(Errc::Invalid, "unknown variant \"" + variant + "\"");
  }
  const Json match = json.value("match", Json::object());
  fault->kind = kind->second;
  fault->resource = match.value("resource", "");
  fault->verb = match.value("verb", "");
  fault->remaining = match.value("remaining", -1);
  fault->live = json.value("live", false) || fault->kind == FaultKind::ErrorEvent ||
                fault->kind == FaultKind::MalformedJson || protobuf;
  fault->code = json.value("code", fault->kind == FaultKind::ErrorEvent ? 410 : 500);
  fault->retry_after = json.value("retryAfter", fault->code == 429 ? 1 : 0);
  fault->text = json.value("text", "");
  fault->variant = variant;
  fault->bytes = json.value("bytes", fault->kind == FaultKind::Slow ? 1U : 0U);
  fault->delay_ms = json.value("delayMs", 0);
  fault->reset = json.value("reset", false);
  fault->before_headers = json.value("beforeHeaders", false);
  return fault;
}

}  // namespace

Result<> Faults::replace(const Json& list) {
  std::vector<FaultPtr> faults;
  if (!list.is_array()) {
    return fail(Errc::Invalid, "faults are a JSON array");
  }
  for (const Json& item : list) {
    try {
      auto fault = parse_fault(item);
      if (!fault) {
        return tl::unexpected(fault.error());
      }
      faults.push_back(std::move(*fault));
    } catch (const Json::exception& error) {  // a field of the wrong type
      return fail(Errc::Invalid, error.what());
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (const FaultPtr& old : faults_) {
      old->lifted = true;
    }
    faults_ = std::move(faults);
  }
  on_change_();
  return {};
}

void Faults::clear() { (void)replace(Json::array()); }  // an empty array cannot be wrong

std::vector<FaultPtr> Faults::current() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

Json Faults::describe() const {
  Json out = Json::array();
  for (const FaultPtr& fault : current()) {
    Json item = Json::object();
    item["kind"] = kind_name(fault->kind);
    item["match"] = Json::object();
    item["match"]["resource"] = fault->resource;
    item["match"]["verb"] = fault->verb;
    item["match"]["remaining"] = fault->remaining.load();
    item["live"] = fault->live;
    out.push_back(std::move(item));
  }
  return out;
}

bool Faults::take_refusal() {
  const auto faults = current();
  return std::ranges::any_of(faults, [](const FaultPtr& fault) {
    return fault->kind == FaultKind::Refuse && spend(*fault);
  });
}

std::vector<FaultPtr> Faults::take(std::string_view resource, std::string_view verb) {
  std::vector<FaultPtr> out;
  for (const FaultPtr& fault : current()) {
    if (!fault->live && fault->kind != FaultKind::Refuse && covers(fault->resource, resource) &&
        covers(fault->verb, verb) && spend(*fault)) {
      out.push_back(fault);
    }
  }
  return out;
}

std::vector<FaultPtr> Faults::take_live(
    std::string_view resource, const std::vector<FaultPtr>& seen) {
  std::vector<FaultPtr> out;
  for (const FaultPtr& fault : current()) {
    const bool known = std::ranges::find(seen, fault) != seen.end();
    if (fault->live && !known && covers(fault->resource, resource) &&
        covers(fault->verb, "watch") && spend(*fault)) {
      out.push_back(fault);
    }
  }
  return out;
}

}  // namespace shunt::test_api
