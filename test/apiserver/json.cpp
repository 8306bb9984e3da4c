#include "test/apiserver/json.h"

namespace shunt::test_api {

std::string text_at(const Json& object, std::string_view key) {
  if (!object.is_object()) {
    return {};
  }
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json& object_at(Json& parent, std::string_view key) {
  Json& child = parent[std::string(key)];
  if (!child.is_object()) {
    child = Json::object();
  }
  return child;
}

void Indenter::feed(std::string_view piece, std::string& out) {
  for (const char c : piece) {
    if (in_string_) {
      out += c;
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
    } else {
      step(c, out);
    }
  }
}

void Indenter::step(char c, std::string& out) {
  const bool closes = c == '}' || c == ']';
  if (closes) {
    --depth_;
  }
  if (just_opened_ != closes && (just_opened_ || closes)) {
    new_line(out);  // before the first member, or before the bracket that ends some
  }
  just_opened_ = false;
  out += c;
  switch (c) {
    case '{':
    case '[':
      ++depth_;
      just_opened_ = true;
      break;
    case ',':
      new_line(out);
      break;
    case ':':
      out += ' ';
      break;
    case '"':
      in_string_ = true;
      break;
    default:
      break;
  }
}

void Indenter::new_line(std::string& out) const {
  out += '\n';
  out.append(static_cast<std::size_t>(depth_) * 2, ' ');
}

}  // namespace shunt::test_api
