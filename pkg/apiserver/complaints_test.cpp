#include "apiserver/complaints.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::apiserver {
namespace {

using Kind = kube::Notice::Kind;

kube::DecodeIssue issue(const std::string& object, const std::string& what = "bad") {
  return {.object = object, .what = what, .object_lost = true};
}

TEST_CASE("a complaint names the object, the reason and what is wrong") {
  Complaints complaints(Kind::Service);
  const auto notice = complaints.take(issue("shop/web", "spec.ports: expected an array"), "u-1");
  REQUIRE(notice);
  CHECK(
      *notice == kube::Notice{
                     .warning = true,
                     .kind = Kind::Service,
                     .object = {"shop", "web"},
                     .uid = "u-1",
                     .reason = "CannotRead",
                     .action = "Read",
                     .note = "set aside: spec.ports: expected an array"});
}

TEST_CASE("what is nobody's is no notice") {
  Complaints services(Kind::Service);
  CHECK_FALSE(services.take(issue("items[17]"), ""));
  CHECK_FALSE(services.take(issue("web"), ""));
  CHECK_FALSE(services.take(issue("shop/"), ""));
  CHECK_FALSE(services.take(issue("shop/we b"), ""));
  Complaints nodes(Kind::Node);
  CHECK(nodes.take(issue("node-1"), ""));
  CHECK_FALSE(nodes.take(issue("items[0]"), ""));
}

TEST_CASE("the same complaint is told once, however many lists repeat it") {
  Complaints complaints(Kind::Service);
  for (int list = 0; list < 3; ++list) {
    complaints.begin_list();
    CHECK(complaints.take(issue("shop/web"), "").has_value() == (list == 0));
    complaints.end_list();
  }
  CHECK(complaints.take(issue("shop/web", "worse"), ""));
  CHECK_FALSE(complaints.take(issue("shop/web"), ""));
}

TEST_CASE("an object that was mended and breaks again is news") {
  Complaints complaints(Kind::Service);
  REQUIRE(complaints.take(issue("shop/web"), ""));
  complaints.begin_list();
  complaints.end_list();
  CHECK(complaints.take(issue("shop/web"), ""));
}

TEST_CASE("a list that was left unfinished forgets nothing") {
  Complaints complaints(Kind::Service);
  REQUIRE(complaints.take(issue("shop/web"), ""));
  complaints.begin_list();
  complaints.begin_list();
  CHECK_FALSE(complaints.take(issue("shop/web"), ""));
}

TEST_CASE("a flood of bad objects ends in silence") {
  Complaints complaints(Kind::Service);
  std::size_t told = 0;
  for (int list = 0; list < 2; ++list) {
    complaints.begin_list();
    for (std::size_t i = 0; i < 2 * Complaints::kMax; ++i) {
      told += complaints.take(issue("shop/web-" + std::to_string(i)), "") ? 1 : 0;
    }
    complaints.end_list();
  }
  CHECK(told == Complaints::kMax);
}

}  // namespace
}  // namespace shunt::apiserver
