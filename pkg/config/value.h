// A setting as a value: what a flag's text or a node of the file becomes, before anything is
// checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "config/duration.h"
#include "config/options.h"

namespace shunt::config {

enum class Type : std::uint8_t {
  String,
  Bool,
  Int,  // 32 bits
  Unsigned,
  Float,
  Duration,
  Count,  // bytes as Kubernetes writes quantities, kept as text
  List,
  Gates,   // featureGates
  Modules  // logging.vmodule
};

using Gates = std::map<std::string, bool>;
using Value = std::variant<
    bool,
    std::int64_t,
    double,
    std::string,
    Nanos,
    std::vector<std::string>,
    Gates,
    std::vector<VerbosityOfFiles>>;

// Settings by the path of their field ("conntrack.min"; "--config" for what only a flag says).
// What nobody said is absent. The keys are the table's (fields.h), which lasts for ever.
using Settings = std::map<std::string_view, Value>;

template <typename T>
const T& get(const Settings& settings, std::string_view path) {
  return std::get<T>(settings.at(path));
}

// From the text of a flag. The error says what would have been right: "must be a duration".
Result<Value> value_of(Type type, std::string_view text);
std::string_view must_be(Type type);

// Go's syntax: 0x, 0o, 0b, a leading 0 for octal.
std::optional<std::int64_t> parse_integer(std::string_view text);
// Whether a number fits the type of a field.
bool fits(Type type, std::int64_t number);

// Whether it is what an absent field of Go's struct has: null, 0, "", false, nothing in it.
bool is_zero(const Value& value);

// For messages: in quotes, on one line, not long.
std::string quoted(std::string_view text);

}  // namespace shunt::config
