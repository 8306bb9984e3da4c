#include "health/proxy_health.h"
#include "runner/compare.h"
#include "runner/kinds.h"
#include "runner/objects.h"
#include "runner/service_health_kind.h"

namespace shunt::conformance {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// The second 0 of a case.
constexpr seconds kWallStart{1'900'000'000};

health::Instant instant(seconds since_start) {
  return {
      Clock::time_point(since_start),
      std::chrono::system_clock::time_point(kWallStart + since_start)};
}

// An answer's time as the bank writes it: seconds since the start, null for never.
json seconds_of(const json& time) {
  const auto text = time.get<std::string>();
  if (text == "0001-01-01T00:00:00Z") {
    return nullptr;
  }
  constexpr std::int64_t kNanos = 1'000'000'000;
  return time_ns(text) / kNanos - kWallStart.count();
}

json body_of(const std::string& text) {
  json body = json::parse(text);
  for (const char* field : {"lastUpdated", "currentTime"}) {
    body[field] = seconds_of(body.at(field));
  }
  if (!body.contains("status")) {
    body["status"] = json::object();
  }
  for (auto& [family, status] : body["status"].items()) {
    status["lastUpdated"] = seconds_of(status.at("lastUpdated"));
  }
  return body;
}

class Agent {
 public:
  explicit Agent(const json& settings)
      : health_(seconds(settings.at("timeoutSeconds").get<int>())) {
    set_node(settings.value("node", json()));
  }

  void act(const json& op) {
    const std::string what = op.at("op");
    if (what == "advance") {
      now_ += seconds(op.at("seconds").get<int>());
    } else if (what == "queued") {
      health_.queued(family_of(op.at("family")), instant(now_));
    } else if (what == "updated") {
      health_.updated(family_of(op.at("family")), instant(now_));
    } else if (what == "node") {
      set_node(op.at("node"));
    } else {
      throw std::invalid_argument("not known to this runner: " + what);
    }
  }

  json answer(const std::string& path) {
    const auto answer =
        path == "/healthz" ? health_.healthz(instant(now_)) : health_.livez(instant(now_));
    return {{"path", path}, {"status", answer.status}, {"body", body_of(answer.body)}};
  }

  json counters() const {
    json all = json::object();
    for (const auto* counters : {&health_.healthz_answers(), &health_.livez_answers()}) {
      for (const auto& [status, count] : *counters) {
        const std::string name = std::to_string(status);
        all[name] = all.value(name, std::uint64_t{0}) + count;
      }
    }
    return all;
  }

 private:
  void set_node(const json& node) {
    const auto known = node.is_null() ? nullptr : decoded<kube::Node>(node);
    health_.set_node(known.get());
  }

  health::ProxyHealth health_;
  seconds now_{0};
};

}  // namespace

CaseResult run_health(const json& test_case, const RunOptions&) {
  const std::string subject = test_case.at("subject");
  if (subject == "service-health") {
    return run_service_health(test_case);
  }
  if (subject == "service-health-objects") {
    return run_service_health_objects(test_case);
  }
  if (subject != "proxy-health") {
    return {Outcome::Skipped, {"a subject that this runner does not know: " + subject}};
  }
  CaseResult result;
  Agent agent(test_case.at("settings"));
  std::size_t index = 0;
  for (const json& step : test_case.at("steps")) {
    for (const json& op : step.at("do")) {
      agent.act(op);
    }
    const json& expect = step.at("expect");
    compare(
        "step " + std::to_string(index++),
        expect,
        agent.answer(expect.at("path")),
        result.messages);
  }
  if (test_case.contains("expectCounters")) {
    compare("counters", test_case["expectCounters"], agent.counters(), result.messages);
  }
  result.outcome = result.messages.empty() ? Outcome::Passed : Outcome::Failed;
  return result;
}

}  // namespace shunt::conformance
