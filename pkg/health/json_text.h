// JSON of a few lines, written by hand: bodies whose exact shape is told by others.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace shunt::health {

// A JSON string: quoted, with what JSON demands escaped. Bytes above ASCII stay as they are.
inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      char escaped[8];
      (void)std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

inline const char* json_bool(bool value) { return value ? "true" : "false"; }

}  // namespace shunt::health
