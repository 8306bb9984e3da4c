#include "sync/reporter.h"

#include <algorithm>

#include "base/log.h"

namespace shunt::sync {
namespace {

using log::kv;

// Of a port as plans name it: "ns/name:port".
kube::ObjectKey service_of(const std::string& port) {
  const std::size_t slash = port.find('/');
  const std::string name = slash == std::string::npos ? port : port.substr(slash + 1);
  return {slash == std::string::npos ? "" : port.substr(0, slash), name.substr(0, name.find(':'))};
}

kube::Notice about(
    const kube::ObjectKey& service, const std::string& uid, const char* reason, std::string note) {
  kube::Notice notice;
  notice.kind = kube::Notice::Kind::Service;
  notice.object = service;
  notice.uid = uid;
  notice.reason = reason;
  notice.action = "Plan";
  notice.note = std::move(note);
  return notice;
}

std::string text(std::string_view view) { return std::string(view); }

}  // namespace

void Reporter::issues(
    const kube::ObjectKey& service,
    const std::string& uid,
    net::Family family,
    std::vector<std::string> issues) {
  if (issues.empty() && issues_.empty()) {
    return;
  }
  const auto at = issues_.find({service, family});
  const std::vector<std::string> before =
      at == issues_.end() ? std::vector<std::string>{} : at->second;
  if (before == issues) {
    return;
  }
  for (const std::string& issue : issues) {
    if (std::ranges::find(before, issue) != before.end()) {
      continue;
    }
    log::warn(
        "part of a Service was set aside",
        {kv("service", to_string(service)),
         kv("family", net::to_string(family)),
         kv("why", issue)});
    observer_->noticed(
        about(service, uid, "SetAside", text(net::to_string(family)) + ": " + issue));
  }
  if (issues.empty()) {
    issues_.erase({service, family});
  } else {
    issues_.insert_or_assign({service, family}, std::move(issues));
  }
}

void Reporter::conflict(
    const kube::ObjectKey& planned, const std::string& uid, const desired::Conflict& c) {
  log::warn(
      "two Services claim one address, the older one has it",
      {kv("frontend", to_string(c.key)), kv("winner", c.winner), kv("loser", c.loser)});
  const kube::ObjectKey loser = service_of(c.loser);
  observer_->noticed(about(
      loser,
      loser == planned ? uid : std::string(),
      "AddressConflict",
      to_string(c.key) + " is served for " + c.winner + ", which is older"));
}

void Reporter::refused(
    net::Family family, const backend::Refusal& refusal, const desired::FrontendPlan* plan) {
  const std::string service = plan != nullptr ? plan->service : "?";
  log::error(
      "the kernel refuses a Service, it is set aside",
      {kv("family", net::to_string(family)),
       kv("service", service),
       kv("frontend", to_string(refusal.frontend)),
       kv("error", refusal.error.what)});
  if (plan != nullptr) {
    kube::Notice notice = about(
        service_of(service),
        {},
        "SetAside",
        "the kernel refuses " + to_string(refusal.frontend) + ": " + refusal.error.what);
    notice.action = "Apply";
    observer_->noticed(notice);
  }
}

void Reporter::accepted(net::Family family, const desired::FrontendKey& frontend) {
  log::info(
      "the kernel took a Service that was set aside",
      {kv("family", net::to_string(family)), kv("frontend", to_string(frontend))});
}

void Reporter::drifted(net::Family family, const backend::Drift& drift) {
  log::warn(
      "somebody changed our part of the kernel, putting it back",
      {kv("family", net::to_string(family)),
       kv("what", drift.kind),
       kv("name", drift.name),
       kv("change", drift.removed ? "removed" : "added or altered"),
       kv("count", drift.count),
       kv("by", drift.author)});
  observer_->drifted(family, drift);
}

}  // namespace shunt::sync
