#include "config/config_file_watch.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "config/config_file.h"

namespace shunt::config {
namespace {

namespace fs = std::filesystem;

constexpr int kMostHops = 16;  // more symlinks in a row are a circle

// The directories in which the file and what it leads to are named, resolved.
std::vector<std::string> directories_of(const std::string& path) {
  std::vector<std::string> out;
  fs::path file(path);
  for (int hop = 0; hop < kMostHops; ++hop) {
    std::error_code error;
    const fs::path parent = file.has_parent_path() ? file.parent_path() : fs::path(".");
    const fs::path resolved = fs::canonical(parent, error);
    if (error) {
      break;
    }
    if (std::ranges::find(out, resolved.string()) == out.end()) {
      out.push_back(resolved.string());
    }
    const fs::path target = fs::read_symlink(file, error);
    if (error) {
      break;
    }
    file = target.is_absolute() ? target : parent / target;
  }
  return out;
}

}  // namespace

Result<ConfigFileWatch> ConfigFileWatch::open(std::string path, std::string content) {
  ConfigFileWatch watch;
  watch.path_ = std::move(path);
  watch.content_ = std::move(content);
  watch.epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!watch.epoll_) {
    const int error = errno;
    return fail(Errc::Denied, std::string("epoll: ") + std::strerror(error), error);
  }
  watch.watch_again();
  if (watch.watches_.empty()) {
    return fail(Errc::Denied, watch.path_ + ": its directory cannot be watched");
  }
  return watch;
}

// Anew each time, since a directory of the same name may be another one.
void ConfigFileWatch::watch_again() {
  std::vector<DirectoryWatch> watches;
  for (const std::string& directory : directories_of(path_)) {
    auto watch = DirectoryWatch::open(directory);
    if (!watch) {
      continue;  // swapped away this moment: what did that tells again
    }
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watch->fd(), &event) == 0) {
      watches.push_back(std::move(*watch));
    }
  }
  if (!watches.empty()) {           // nothing to watch is worse than what was
    watches_ = std::move(watches);  // closing the old ones takes them out of epoll
  }
}

bool ConfigFileWatch::changed() {
  for (DirectoryWatch& watch : watches_) {
    (void)watch.take_changes();  // the file tells more
  }
  // First the watches, then the content: what comes after the reading is told again.
  watch_again();
  auto content = read_file(path_);
  if (!content || *content == content_) {
    return false;
  }
  content_ = std::move(*content);
  return true;
}

}  // namespace shunt::config
