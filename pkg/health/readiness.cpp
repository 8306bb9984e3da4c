#include "health/readiness.h"

#include "health/json_text.h"

namespace shunt::health {
namespace {

class Checks {
 public:
  void add(const std::string& name, bool ok, const std::string& why) {
    all_ok_ = all_ok_ && ok;
    text_ += text_.empty() ? "{\"name\":" : ",{\"name\":";
    text_ += json_string(name);
    text_ += ok ? ",\"ok\":true}" : ",\"ok\":false,\"why\":" + json_string(why) + "}";
  }
  bool all_ok() const { return all_ok_; }
  const std::string& text() const { return text_; }

 private:
  bool all_ok_ = true;
  std::string text_;
};

std::string seconds(Millis time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

ReadyAnswer answer(const Readiness& readiness) {
  Checks checks;
  checks.add("synced", readiness.synced, "the first complete state is not written yet");
  checks.add("in-sync", readiness.in_sync, "changes wait to be written");
  checks.add(
      "hooks", readiness.hooks_present, "the kernel does not have our table, or not all of it");
  if (readiness.canary) {
    checks.add("canary", *readiness.canary, "a lookup in the kernel did not find what was written");
  }
  for (const Readiness::Contact& contact : readiness.contacts) {
    checks.add(
        "contact-" + contact.resource,
        contact.age && *contact.age <= readiness.max_contact_age,
        contact.age ? "the API server was last heard of " + seconds(*contact.age) +
                          " ago, more than " + seconds(readiness.max_contact_age)
                    : "the API server was never heard of");
  }
  std::string body = "{\"ready\":";
  body += json_bool(checks.all_ok());
  body += ",\"checks\":[";
  body += checks.text();
  body += "],\"setAside\":";
  body += std::to_string(readiness.set_aside);
  body += "}\n";
  return {checks.all_ok() ? 200 : 503, std::move(body)};
}

}  // namespace shunt::health
