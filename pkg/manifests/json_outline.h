// What a JSON object is, before anybody reads it: its kind, and where its items are when it is a
// list. Views into the text; nothing is copied, and a list of any length costs its views. Whether
// what is between is good JSON is for the decoders to say. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shunt::manifests {

struct Outline {
  std::string_view api_version;  // "" when absent, or no plain text
  std::string_view kind;
  bool has_items = false;
  std::vector<std::string_view> items;
};

// Errors (Errc::Invalid) say what is wrong.
Result<Outline> outline_of(std::string_view object);

// The JSON value at the beginning of `text`, without the blanks before it; an empty view when there
// are only blanks. Errors when it does not end, or is nested deeper than any object of the API.
Result<std::string_view> first_value(std::string_view text);

}  // namespace shunt::manifests
