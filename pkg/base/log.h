// Log lines in logfmt: a constant message and fields. Whoever decides, logs, once; pure code is
// silent.
//
//   log::warn("apply failed, will retry", {kv("family", "IPv4"), kv("keys", n)});
//
// error: someone must act. warn: degraded, we go on. info: one line a state change. debug: a key.
// Any thread. Never pass a secret: nothing here can tell that it is one.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace shunt::log {

enum class Level : std::uint8_t { Debug, Info, Warn, Error };

struct Field {
  std::string_view key;
  std::string value;
};
using Fields = std::initializer_list<Field>;

inline Field kv(std::string_view key, std::string value) { return {key, std::move(value)}; }
inline Field kv(std::string_view key, std::string_view value) { return {key, std::string(value)}; }
inline Field kv(std::string_view key, const char* value) { return {key, value}; }
inline Field kv(std::string_view key, bool value) { return {key, value ? "true" : "false"}; }
template <std::integral T>
Field kv(std::string_view key, T value) {
  return {key, std::to_string(value)};
}
Field kv(std::string_view key, double value);

// Until this is called, lines of info and above go to stderr.
void set_level(Level level);
bool enabled(Level level);

void write(Level level, std::string_view message, Fields fields);
inline void debug(std::string_view message, Fields fields = {}) {
  if (enabled(Level::Debug)) {
    write(Level::Debug, message, fields);
  }
}
inline void info(std::string_view message, Fields fields = {}) {
  write(Level::Info, message, fields);
}
inline void warn(std::string_view message, Fields fields = {}) {
  write(Level::Warn, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  write(Level::Error, message, fields);
}

// "value" or "\"va\\\"lue\"": quoted when logfmt needs it, control characters escaped, so that what
// the network sends cannot forge a line.
std::string logfmt_value(std::string_view value);

}  // namespace shunt::log
