#include "health/readiness.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::health {
namespace {

using std::chrono::seconds;

Readiness all_is_well() {
  Readiness readiness;
  readiness.synced = true;
  readiness.in_sync = true;
  readiness.hooks_present = true;
  readiness.canary = true;
  readiness.contacts = {{"services", seconds(3)}, {"endpointslices", seconds(70)}};
  readiness.max_contact_age = seconds(70);
  return readiness;
}

TEST_CASE("a node is ready when every check says so, and names each") {
  Readiness readiness = all_is_well();
  readiness.set_aside = 2;
  const ReadyAnswer got = answer(readiness);
  CHECK(got.status == 200);
  CHECK(
      got.body ==
      R"({"ready":true,"checks":[{"name":"synced","ok":true},{"name":"in-sync","ok":true},)"
      R"({"name":"hooks","ok":true},{"name":"canary","ok":true},)"
      R"({"name":"contact-services","ok":true},{"name":"contact-endpointslices","ok":true}],)"
      R"("setAside":2})"
      "\n");
}

TEST_CASE("each check alone makes a node unready and says why") {
  struct Case {
    const char* name;
    void (*spoil)(Readiness&);
    const char* why;
  };
  const Case cases[] = {
      {"not synced", [](Readiness& r) { r.synced = false; }, R"("name":"synced","ok":false)"},
      {"not in sync", [](Readiness& r) { r.in_sync = false; }, R"("name":"in-sync","ok":false)"},
      {"no hooks", [](Readiness& r) { r.hooks_present = false; }, R"("name":"hooks","ok":false)"},
      {"canary", [](Readiness& r) { r.canary = false; }, R"("name":"canary","ok":false)"},
      {"old contact",
       [](Readiness& r) { r.contacts[1].age = Millis(71'000); },
       R"("name":"contact-endpointslices","ok":false,"why":"the API server was last heard of 71 s)"},
      {"no contact",
       [](Readiness& r) { r.contacts[0].age.reset(); },
       R"("name":"contact-services","ok":false,"why":"the API server was never heard of")"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      Readiness readiness = all_is_well();
      c.spoil(readiness);
      const ReadyAnswer got = answer(readiness);
      CHECK(got.status == 503);
      CHECK(got.body.starts_with(R"({"ready":false,)"));
      CHECK(got.body.find(c.why) != std::string::npos);
    }
  }
}

TEST_CASE("a canary that was not sent is not among the checks") {
  Readiness readiness = all_is_well();
  readiness.canary.reset();
  CHECK(answer(readiness).status == 200);
  CHECK(answer(readiness).body.find("canary") == std::string::npos);
}

}  // namespace
}  // namespace shunt::health
