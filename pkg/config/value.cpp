#include "config/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/trimmed.h"

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes a variant inside an expected for uninitialized where it is moved from.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace shunt::config {
namespace {

constexpr std::size_t kLongestQuote = 120;

std::optional<bool> parse_bool(std::string_view text) {
  for (const char* word : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == word) {
      return true;
    }
  }
  for (const char* word : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == word) {
      return false;
    }
  }
  return std::nullopt;
}

std::optional<double> parse_float(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

// "Name=true,Other=false".
std::optional<Value> parse_gates(std::string_view text) {
  Gates gates;
  for (const std::string& part : split(text)) {
    const std::string_view entry = trimmed(part);
    const std::size_t equals = entry.find('=');
    if (entry.empty()) {
      continue;
    }
    const auto on = equals == std::string_view::npos
                        ? std::nullopt
                        : parse_bool(trimmed(entry.substr(equals + 1)));
    if (!on) {
      return std::nullopt;
    }
    gates[std::string(trimmed(entry.substr(0, equals)))] = *on;
  }
  return Value(std::move(gates));
}

// "pattern=2,other=4".
std::optional<Value> parse_modules(std::string_view text) {
  std::vector<VerbosityOfFiles> modules;
  for (const std::string& part : split(text)) {
    const std::size_t equals = part.find('=');
    if (part.empty()) {
      continue;
    }
    const auto verbosity = equals == std::string::npos || equals == 0
                               ? std::nullopt
                               : parse_integer(std::string_view(part).substr(equals + 1));
    if (!verbosity || !fits(Type::Unsigned, *verbosity)) {
      return std::nullopt;
    }
    modules.push_back({part.substr(0, equals), static_cast<std::uint32_t>(*verbosity)});
  }
  return Value(std::move(modules));
}

bool is_quantity(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view suffix = text.substr(digits);
  static constexpr std::string_view kSuffixes[] = {
      "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  return digits > 0 && parse_float(text.substr(0, digits)) &&
         std::ranges::find(kSuffixes, suffix) != std::end(kSuffixes);
}

std::optional<Value> parsed(Type type, std::string_view text) {
  const auto as_value = [](const auto& value) {
    return value ? std::optional<Value>(*value) : std::nullopt;
  };
  switch (type) {
    case Type::String:
      return Value(std::string(text));
    case Type::Bool:
      return as_value(parse_bool(text));
    case Type::Int:
    case Type::Unsigned: {
      const auto number = parse_integer(text);
      return number && fits(type, *number) ? std::optional<Value>(*number) : std::nullopt;
    }
    case Type::Float:
      return as_value(parse_float(text));
    case Type::Duration:
      return as_value(parse_go_duration(text));
    case Type::Count:
      return is_quantity(text) ? std::optional<Value>(std::string(text)) : std::nullopt;
    case Type::List:
      return Value(split(text));
    case Type::Gates:
      return parse_gates(text);
    case Type::Modules:
      return parse_modules(text);
  }
  return std::nullopt;
}

}  // namespace

std::string_view must_be(Type type) {
  switch (type) {
    case Type::String:
      return "must be text";
    case Type::Bool:
      return "must be true or false";
    case Type::Int:
      return "must be a whole number of 32 bits";
    case Type::Unsigned:
      return "must be a whole number from 0 on";
    case Type::Float:
      return "must be a number";
    case Type::Duration:
      return "must be a duration like 1m30s";
    case Type::Count:
      return "must be a quantity like 64Ki";
    case Type::List:
      return "must be a list of texts";
    case Type::Gates:
      return "must map names to true or false";
    case Type::Modules:
      return "must be patterns of files, each with a verbosity";
  }
  return "is of a wrong type";
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    const char letter = text[1];
    base = letter == 'x' || letter == 'X' ? 16 : letter == 'b' || letter == 'B' ? 2 : 8;
    const bool bare = letter >= '0' && letter <= '9';
    text.remove_prefix(bare ? 1 : 2);
    if (!bare && base == 8 && letter != 'o' && letter != 'O') {
      return std::nullopt;
    }
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() ||
      value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  const auto number = static_cast<std::int64_t>(value);
  return negative ? -number : number;
}

bool fits(Type type, std::int64_t number) {
  return type == Type::Unsigned ? number >= 0 && number <= std::numeric_limits<std::uint32_t>::max()
                                : number >= std::numeric_limits<std::int32_t>::min() &&
                                      number <= std::numeric_limits<std::int32_t>::max();
}

Result<Value> value_of(Type type, std::string_view text) {
  if (auto value = parsed(type, text)) {
    return std::move(*value);
  }
  return fail(Errc::Invalid, std::string(must_be(type)) + ", not " + quoted(text));
}

bool is_zero(const Value& value) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Nanos>) {
          return held.count() == 0;
        } else if constexpr (std::is_arithmetic_v<Held>) {
          return held == Held{};
        } else {
          return held.empty();
        }
      },
      value);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kLongestQuote)) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      char escaped[8];
      (void)std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
      out += escaped;  // a short, known format: it fits
    } else {
      out += c;
    }
  }
  return out + (text.size() > kLongestQuote ? "...\"" : "\"");
}

}  // namespace shunt::config
