// Compact JSON as text: finding, cutting and replacing parts of it without a DOM. A hundred
// thousand objects are kept as text, and a change touches a few bytes of one: parsing all of it
// would be most of the server's work.
//
// The text is what our own serializer wrote, so nothing here validates; a text that is not JSON
// gives fewer parts, never a read past its end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shunt::test_api {

// The members of an object, in order. Keys come without quotes, keys and values as written.
class Members {
 public:
  explicit Members(std::string_view object);
  bool next();
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }

 private:
  std::string_view rest_;
  std::string_view key_;
  std::string_view value_;
};

// The elements of an array, in order.
class Elements {
 public:
  explicit Elements(std::string_view array);
  bool next();
  std::string_view value() const { return value_; }

 private:
  std::string_view rest_;
  std::string_view value_;
};

std::optional<std::string_view> member(std::string_view object, std::string_view key);
std::vector<std::string> elements(std::string_view array);

// The object with `key` set to the JSON text `value`: in its place, or as the last member.
std::string with_member(std::string_view object, std::string_view key, std::string_view value);
std::string array_of(const std::vector<std::string>& elements);

// A JSON string as it reads, and a text as a JSON string. What is no string reads as "".
std::string string_value(std::string_view value);
std::string json_string(std::string_view text);
std::string text_member(std::string_view object, std::string_view key);

}  // namespace shunt::test_api
