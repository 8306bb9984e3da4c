#include "manifests/json_outline.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shunt::manifests {
namespace {

constexpr std::size_t kMaxDepth = 200;
constexpr std::string_view kBlanks = " \t\r\n";

tl::unexpected<Error> not_json(std::string_view what) {
  return fail(Errc::Invalid, "not JSON: " + std::string(what));
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }
  bool at_end() const { return at_ == text_.size(); }
  std::size_t at() const { return at_; }

  // Takes `c` if it comes next, blanks aside.
  bool take(char c) {
    skip_blanks();
    if (at_end() || text_[at_] != c) {
      return false;
    }
    ++at_;
    return true;
  }

  // The next value as it stands.
  Result<std::string_view> value() {
    skip_blanks();
    const std::size_t begin = at_;
    Result<> passed = at_end() ? Result<>(not_json("a value is missing")) : pass_value();
    if (!passed) {
      return tl::unexpected(passed.error());
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  Result<> pass_value() {
    std::size_t depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        if (!pass_string()) {
          return not_json("a string does not end");
        }
        continue;
      }
      if (c == '{' || c == '[') {
        if (++depth > kMaxDepth) {
          return fail(Errc::Invalid, "nested deeper than " + std::to_string(kMaxDepth));
        }
      } else if (c == '}' || c == ']') {
        if (depth == 0) {
          return not_json("a bracket that nobody opened");
        }
        --depth;
      } else if (depth == 0) {
        return pass_word();
      }
      ++at_;
    } while (depth > 0 && !at_end());
    return depth > 0 ? Result<>(not_json("it ends too early")) : Result<>();
  }

  bool pass_string() {
    for (++at_; !at_end(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
        if (at_end()) {
          return false;
        }
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }

  // A number, or one of the three words.
  Result<> pass_word() {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,:]}[{\"", at_), text_.size());
    if (end == at_) {
      return not_json("a value is missing");
    }
    at_ = end;
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string_view plain_text(std::string_view value) {
  const bool plain =
      value.size() >= 2 && value.front() == '"' && value.find('\\') == std::string_view::npos;
  return plain ? value.substr(1, value.size() - 2) : std::string_view();
}

// Calls `each` for what stands between the brackets, as often as it succeeds.
template <typename Each>
Result<> pass_elements(Scanner& scanner, char end, const Each& each) {
  if (scanner.take(end)) {
    return {};
  }
  for (;;) {
    if (auto passed = each(); !passed) {
      return passed;
    }
    if (scanner.take(end)) {
      return {};
    }
    if (!scanner.take(',')) {
      return not_json(scanner.at_end() ? "it ends too early" : "a comma is missing");
    }
  }
}

Result<std::vector<std::string_view>> elements_of(std::string_view array) {
  std::vector<std::string_view> out;
  Scanner scanner(array);
  if (!scanner.take('[')) {
    return not_json("items is no array");
  }
  const auto passed = pass_elements(scanner, ']', [&]() -> Result<> {
    auto value = scanner.value();
    if (!value) {
      return tl::unexpected(value.error());
    }
    out.push_back(*value);
    return {};
  });
  if (!passed) {
    return tl::unexpected(passed.error());
  }
  return out;
}

}  // namespace

Result<Outline> outline_of(std::string_view object) {
  Outline out;
  Scanner scanner(object);
  if (!scanner.take('{')) {
    return fail(Errc::Invalid, "not an object");
  }
  std::string_view items;
  const auto passed = pass_elements(scanner, '}', [&]() -> Result<> {
    const auto key = scanner.value();
    if (!key || !key->starts_with('"') || !scanner.take(':')) {
      return not_json("a key is missing");
    }
    const auto value = scanner.value();
    if (!value) {
      return tl::unexpected(value.error());
    }
    if (*key == "\"kind\"") {
      out.kind = plain_text(*value);
    } else if (*key == "\"apiVersion\"") {
      out.api_version = plain_text(*value);
    } else if (*key == "\"items\"") {
      out.has_items = *value != "null";
      items = *value;
    }
    return {};
  });
  if (!passed) {
    return tl::unexpected(passed.error());
  }
  if (out.has_items && out.kind.ends_with("List")) {  // other kinds may call anything so
    auto elements = elements_of(items);
    if (!elements) {
      return tl::unexpected(elements.error());
    }
    out.items = std::move(*elements);
  }
  return out;
}

Result<std::string_view> first_value(std::string_view text) {
  Scanner scanner(text);
  scanner.skip_blanks();
  if (scanner.at_end()) {
    return std::string_view();
  }
  return scanner.value();
}

}  // namespace shunt::manifests
