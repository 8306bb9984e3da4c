// Log lines, in logfmt or as JSON: a constant message and fields. Whoever decides, logs, once; pure
// code is silent.
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
enum class Format : std::uint8_t {
  Logfmt,  // ts=... level=info msg="kube-shunt starts" node=a
  Json     // {"ts":"...","level":"info","msg":"kube-shunt starts","node":"a"}: fields are strings
};

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

// At any time, from any thread; the next line is written so. Until then lines of info and above go
// to stderr as logfmt.
void set_level(Level level);
void set_format(Format format);
bool enabled(Level level);

// What kube-proxy's -v means here: from 2 on every change is logged.
Level level_for_verbosity(std::int64_t verbosity);

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

// Pure, for write() and its tests: one line without its end. `time` is what "ts" says.
std::string line(
    Format format, std::string_view time, Level level, std::string_view message, Fields fields);

// "value" or "\"va\\\"lue\"": quoted when logfmt needs it, control characters escaped, so that what
// the network sends cannot forge a line.
std::string logfmt_value(std::string_view value);

// A JSON string with its quotes, valid whatever the bytes are: each that is no UTF-8 becomes
// U+FFFD.
std::string json_string(std::string_view text);

// A field's text, so long that an object of the cluster cannot flood the log: at most kLongestField
// bytes, cut between characters, and a mark that says how many bytes are missing.
inline constexpr std::size_t kLongestField = 2048;
std::string bounded(std::string_view text);

}  // namespace shunt::log
