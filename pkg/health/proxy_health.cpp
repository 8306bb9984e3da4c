#include "health/proxy_health.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace shunt::health {
namespace {

using Wall = std::chrono::system_clock::time_point;

constexpr char kScalerTaint[] = "ToBeDeletedByClusterAutoscaler";
constexpr char kNever[] = "0001-01-01T00:00:00Z";  // Go's zero time

// RFC 3339 with as many digits of the second as it takes, as Go writes it.
std::string rfc3339(Wall time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds).count();
  const std::time_t unix_time = seconds.time_since_epoch().count();
  std::tm parts{};
  (void)::gmtime_r(&unix_time, &parts);  // fails only beyond the year 2^31
  std::array<char, 64> text{};
  std::string out(
      text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts));
  if (nanos != 0) {
    (void)std::snprintf(text.data(), text.size(), ".%09lld", static_cast<long long>(nanos));
    std::string digits(text.data());
    digits.erase(digits.find_last_not_of('0') + 1);
    out += digits;
  }
  return out + "Z";
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

const char* word(bool value) { return value ? "true" : "false"; }

}  // namespace

bool is_eligible(const kube::Node* node) {
  return node != nullptr && !node->deleting &&
         std::ranges::find(node->taint_keys, kScalerTaint) == node->taint_keys.end();
}

void ProxyHealth::queued(net::Family family, const Instant& now) {
  auto& waiting_since = families_[family].waiting_since;
  if (!waiting_since) {
    waiting_since = now.steady;
  }
}

void ProxyHealth::updated(net::Family family, const Instant& now) {
  families_[family] = {now.wall, std::nullopt};
}

bool ProxyHealth::keeps_up(const OfFamily& family, Clock::time_point now) const {
  return !family.waiting_since || now - *family.waiting_since < timeout_;
}

bool ProxyHealth::healthy(Clock::time_point now) const {
  return std::ranges::all_of(families_, [&](const auto& entry) {
    return !entry.second.updated || keeps_up(entry.second, now);
  });
}

ProxyHealth::Answer ProxyHealth::healthz(const Instant& now) {
  const bool is_healthy = healthy(now.steady);
  const bool ok = is_healthy && node_eligible_;
  const int status = ok ? 200 : 503;
  ++healthz_answers_[status];
  return {status, body(now, is_healthy, ok, true)};
}

ProxyHealth::Answer ProxyHealth::livez(const Instant& now) {
  const bool ok = healthy(now.steady);
  const int status = ok ? 200 : 503;
  ++livez_answers_[status];
  return {status, body(now, ok, ok, false)};
}

// Nothing in it needs escaping: times, booleans and the names of the families.
std::string ProxyHealth::body(const Instant& now, bool healthy, bool ok, bool with_node) const {
  std::optional<Wall> newest;
  std::string status;
  for (const auto& [family, of_family] : families_) {
    if (!of_family.updated) {
      continue;
    }
    newest = std::max(newest.value_or(*of_family.updated), *of_family.updated);
    status += (status.empty() ? "" : ",") + quoted(std::string(net::to_string(family))) +
              ":{\"lastUpdated\":" + quoted(rfc3339(*of_family.updated)) +
              ",\"healthy\":" + word(keeps_up(of_family, now.steady)) + "}";
  }
  const std::string last = ok ? rfc3339(now.wall) : newest ? rfc3339(*newest) : kNever;
  std::string out = "{\"lastUpdated\":" + quoted(last);
  out += ",\"currentTime\":" + quoted(rfc3339(now.wall));
  if (with_node) {
    out += std::string(",\"nodeEligible\":") + word(node_eligible_);
  }
  out += std::string(",\"healthy\":") + word(healthy);
  if (!status.empty()) {
    out += ",\"status\":{" + status + "}";
  }
  return out + "}";
}

}  // namespace shunt::health
