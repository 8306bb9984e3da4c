#include "test/apiserver/json_text.h"

#include <charconv>
#include <cstdint>

#include "test/apiserver/json.h"

namespace shunt::test_api {
namespace {

// Behind the string that begins at `at`.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (std::size_t quote = text.find('"', at + 1); quote != std::string_view::npos;
       quote = text.find('"', quote + 1)) {
    std::size_t backslashes = 0;
    while (text[quote - 1 - backslashes] == '\\') {  // ends at the opening quote at the latest
      ++backslashes;
    }
    if (backslashes % 2 == 0) {
      return quote + 1;
    }
  }
  return text.size();
}

std::size_t nested_end(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    switch (text[at]) {
      case '"':
        at = string_end(text, at);
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) {
          return at + 1;
        }
        break;
      default:
        break;
    }
    ++at;
  }
  return text.size();
}

// Cuts the value that `rest` begins with, and the comma behind it.
std::string_view take_value(std::string_view& rest) {
  const char first = rest.empty() ? '\0' : rest.front();
  const std::size_t end = first == '"'                   ? string_end(rest, 0)
                          : first == '{' || first == '[' ? nested_end(rest, 0)
                                                         : std::min(rest.find(','), rest.size());
  const std::string_view value = rest.substr(0, end);
  rest.remove_prefix(end < rest.size() && rest[end] == ',' ? end + 1 : end);
  return value;
}

std::string_view inside(std::string_view text, char open) {
  return text.size() < 2 || text.front() != open ? std::string_view()
                                                 : text.substr(1, text.size() - 2);
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0U | (code >> 6U));
    add(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    add(0xe0U | (code >> 12U));
    add(0x80U | ((code >> 6U) & 0x3fU));
    add(0x80U | (code & 0x3fU));
  } else {
    add(0xf0U | (code >> 18U));
    add(0x80U | ((code >> 12U) & 0x3fU));
    add(0x80U | ((code >> 6U) & 0x3fU));
    add(0x80U | (code & 0x3fU));
  }
}

std::uint32_t hex4(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  const std::string_view digits = text.substr(std::min(at, text.size()), 4);
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);  // 0 when wrong
  return value;
}

// `at`: the character behind a backslash. Answers the last one that belongs to the escape.
std::size_t append_escape(std::string_view text, std::size_t at, std::string& out) {
  constexpr std::string_view kLetters = "bfnrt";
  constexpr std::string_view kMeanings = "\b\f\n\r\t";
  const std::size_t letter = kLetters.find(text[at]);
  if (letter != std::string_view::npos) {
    out += kMeanings[letter];
    return at;
  }
  if (text[at] != 'u') {
    out += text[at];
    return at;
  }
  std::uint32_t code = hex4(text, at + 1);
  std::size_t end = at + 4;
  if (code >= 0xd800 && code < 0xdc00 && text.substr(std::min(end + 1, text.size()), 2) == "\\u") {
    code = 0x10000U + ((code - 0xd800U) << 10U) + ((hex4(text, end + 3) - 0xdc00U) & 0x3ffU);
    end += 6;
  }
  append_utf8(code, out);
  return end;
}

}  // namespace

Members::Members(std::string_view object) : rest_(inside(object, '{')) {}

bool Members::next() {
  if (rest_.empty() || rest_.front() != '"') {
    return false;
  }
  const std::size_t end = string_end(rest_, 0);
  key_ = inside(rest_.substr(0, end), '"');
  rest_.remove_prefix(std::min(end + 1, rest_.size()));  // and the colon
  value_ = take_value(rest_);
  return true;
}

Elements::Elements(std::string_view array) : rest_(inside(array, '[')) {}

bool Elements::next() {
  if (rest_.empty()) {
    return false;
  }
  const std::size_t before = rest_.size();
  value_ = take_value(rest_);
  return rest_.size() < before;
}

std::optional<std::string_view> member(std::string_view object, std::string_view key) {
  for (Members members(object); members.next();) {
    if (members.key() == key) {
      return members.value();
    }
  }
  return std::nullopt;
}

std::vector<std::string> elements(std::string_view array) {
  std::vector<std::string> out;
  for (Elements each(array); each.next();) {
    out.emplace_back(each.value());
  }
  return out;
}

std::string with_member(std::string_view object, std::string_view key, std::string_view value) {
  std::string out;
  out.reserve(object.size() + key.size() + value.size() + 8);
  if (const auto old = member(object, key)) {
    const auto at = static_cast<std::size_t>(old->data() - object.data());
    out.append(object.substr(0, at)).append(value).append(object.substr(at + old->size()));
    return out;
  }
  const std::string_view members = inside(object, '{');
  out.append("{").append(members).append(members.empty() ? "\"" : ",\"");
  out.append(key).append("\":").append(value).append("}");
  return out;
}

std::string array_of(const std::vector<std::string>& elements) {
  std::string out = "[";
  for (const std::string& element : elements) {
    out.append(out.size() > 1 ? "," : "").append(element);
  }
  return out + "]";
}

std::string string_value(std::string_view value) {
  const std::string_view text = inside(value, '"');
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      at = append_escape(text, at + 1, out);
    } else {
      out += text[at];
    }
  }
  return out;
}

std::string json_string(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_member(std::string_view object, std::string_view key) {
  return string_value(member(object, key).value_or(""));
}

}  // namespace shunt::test_api
