// Label and field selectors of a list or watch.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "test/apiserver/object.h"
#include "test/apiserver/status.h"

namespace shunt::test_api {

class Selector {
 public:
  // Texts as they come in the query. An unknown field or broken syntax is a 400.
  static Answer<Selector> parse(
      const Resource& resource, std::string_view labels, std::string_view fields);

  bool matches(const Object& object) const;
  bool everything() const { return terms_.empty(); }

  using Term = std::function<bool(const Object&)>;

 private:
  std::vector<Term> terms_;  // all must hold
};

}  // namespace shunt::test_api
