#include "test/apiserver/journal.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"

namespace shunt::test_api {

Result<> Journal::open(const std::string& path, Store& store) {
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    const Json entry = Json::parse(line, nullptr, false);
    if (line.empty()) {
      continue;
    }
    if (entry.is_discarded() || !entry.is_object()) {
      log::warn("journal line skipped", {log::kv("file", path)});  // the last one of a killed run
      continue;
    }
    const auto version = entry.value("version", std::uint64_t{0});
    if (!entry.contains("key")) {
      store.advance_to(version);
      continue;
    }
    const auto table = entry.value("table", std::size_t{0});
    ObjectPtr object;
    if (entry.contains("object")) {
      object = make_object(entry["object"], version);
    }
    if (table < kTables) {
      store.replay(table, entry.value("key", ""), std::move(object), version);
    }
  }
  fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_) {
    return fail(Errc::Invalid, path + ": " + std::strerror(errno), errno);
  }
  append("\n");  // ends the half line that a killed run may have left
  return {};
}

void Journal::write(std::size_t table, const std::string& key, const Change& change) {
  if (!fd_) {
    return;
  }
  std::string line =
      fmt::format(R"({{"version":{},"table":{},"key":{})", change.version, table, Json(key).dump());
  if (change.after) {
    line += fmt::format(R"(,"object":{})", change.after->body);
  }
  append(line + "}\n");
}

void Journal::write_version(std::uint64_t version) {
  append(fmt::format("{{\"version\":{}}}\n", version));
}

void Journal::append(const std::string& line) {
  if (fd_ && ::write(fd_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    log::error("journal write failed", {log::kv("error", std::strerror(errno))});
  }
}

}  // namespace shunt::test_api
