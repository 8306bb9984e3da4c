// nlohmann's DOM with the order of fields kept, and Go's way of indenting.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace shunt::test_api {

using Json = nlohmann::ordered_json;

// The string at `key`, or "" when it is absent or no string.
std::string text_at(const Json& object, std::string_view key);

// The object at `key`; a missing or null one is created.
Json& object_at(Json& parent, std::string_view key);

// Compact JSON in any pieces -> the same with two-space indentation, as json.MarshalIndent writes
// it for curl. Keeps state between pieces, so that a long list never exists twice.
class Indenter {
 public:
  void feed(std::string_view piece, std::string& out);

 private:
  void step(char c, std::string& out);
  void new_line(std::string& out) const;

  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool just_opened_ = false;  // "{" was seen: "{}" stays together
};

}  // namespace shunt::test_api
