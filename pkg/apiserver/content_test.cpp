#include "apiserver/content.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::apiserver {
namespace {

TEST_CASE("protobuf is asked for unless the configuration says otherwise") {
  struct Case {
    const char* content_type;
    const char* accept_content_types;
    std::string_view accept;
  };
  for (const Case& c : {
           Case{"", "", "application/vnd.kubernetes.protobuf, application/json"},
           Case{
               "application/vnd.kubernetes.protobuf",
               "",
               "application/vnd.kubernetes.protobuf, application/json"},
           Case{"application/json", "", "application/json"},
           Case{"application/yaml", "", "application/json"},  // which we cannot read
           Case{"", "application/json", "application/json"},
           Case{"application/json", "a/b;q=1, c/d", "a/b;q=1, c/d"},
       }) {
    CHECK(accept_header(c.content_type, c.accept_content_types) == c.accept);
  }
}

TEST_CASE("the Content-Type of an answer tells its decoder") {
  for (const char* type :
       {"application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "Application/Vnd.Kubernetes.Protobuf ; stream=watch"}) {
    CHECK(format_of(type) == Format::Protobuf);
  }
  for (const char* type :
       {"",
        "application/json",
        "application/json;stream=watch",
        "text/html; charset=utf-8",
        "application/vnd.kubernetes.protobuffer"}) {
    CHECK(format_of(type) == Format::Json);
  }
}

}  // namespace
}  // namespace shunt::apiserver
