#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>

#include "base/utf8.h"

namespace shunt::log {
namespace {

std::atomic<Format> wanted_format{Format::Logfmt};

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Debug:
      return spdlog::level::debug;
    case Level::Info:
      return spdlog::level::info;
    case Level::Warn:
      return spdlog::level::warn;
    case Level::Error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string_view name_of(Level level) {
  switch (level) {
    case Level::Debug:
      return "debug";
    case Level::Info:
      return "info";
    case Level::Warn:
      return "warning";
    case Level::Error:
      return "error";
  }
  return "info";
}

// Lines are made here, whole: the format may change from one to the next.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "kube-shunt", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *instance;
}

// "2026-03-01T12:00:00.123+02:00".
std::string now() {
  const auto time = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  std::tm local{};
  (void)::localtime_r(&seconds, &local);  // fails only for years that no clock has
  const long minutes = local.tm_gmtoff / 60;
  return fmt::format(
      "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{}{:02}:{:02}",
      local.tm_year + 1900,
      local.tm_mon + 1,
      local.tm_mday,
      local.tm_hour,
      local.tm_min,
      local.tm_sec,
      millis,
      minutes < 0 ? '-' : '+',
      std::abs(minutes) / 60,
      std::abs(minutes) % 60);
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) {
    return true;
  }
  for (const char c : value) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) {
      return true;
    }
  }
  return false;
}

std::string logfmt_line(
    std::string_view time, Level level, std::string_view message, Fields fields) {
  std::string out =
      fmt::format("ts={} level={} msg={}", time, name_of(level), logfmt_value(message));
  for (const Field& field : fields) {
    out += ' ';
    out += field.key;
    out += '=';
    out += logfmt_value(bounded(field.value));
  }
  return out;
}

std::string json_line(std::string_view time, Level level, std::string_view message, Fields fields) {
  std::string out = "{\"ts\":" + json_string(time) + ",\"level\":" + json_string(name_of(level)) +
                    ",\"msg\":" + json_string(message);
  for (const Field& field : fields) {
    out += ',';
    out += json_string(field.key);
    out += ':';
    out += json_string(bounded(field.value));
  }
  out += '}';
  return out;
}

}  // namespace

Field kv(std::string_view key, double value) { return {key, fmt::format("{:.6g}", value)}; }

void set_level(Level level) { logger().set_level(to_spdlog(level)); }

void set_format(Format format) { wanted_format = format; }

bool enabled(Level level) { return logger().should_log(to_spdlog(level)); }

Level level_for_verbosity(std::int64_t verbosity) {
  return verbosity >= 2 ? Level::Debug : Level::Info;
}

void write(Level level, std::string_view message, Fields fields) {
  if (enabled(level)) {
    logger().log(to_spdlog(level), "{}", line(wanted_format, now(), level, message, fields));
  }
}

std::string line(
    Format format, std::string_view time, Level level, std::string_view message, Fields fields) {
  return format == Format::Json ? json_line(time, level, message, fields)
                                : logfmt_line(time, level, message, fields);
}

std::string logfmt_value(std::string_view value) {
  if (!needs_quotes(value)) {
    return std::string(value);
  }
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
  return out;
}

std::string bounded(std::string_view text) {
  if (text.size() <= kLongestField) {
    return std::string(text);
  }
  const std::size_t end = utf8_boundary(text, kLongestField);
  return fmt::format("{}...({} bytes more)", text.substr(0, end), text.size() - end);
}

}  // namespace shunt::log
