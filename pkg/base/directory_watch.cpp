#include "base/directory_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace shunt {
namespace {

constexpr std::uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                  IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF |
                                  IN_MOVE_SELF | IN_ONLYDIR;

}  // namespace

Result<DirectoryWatch> DirectoryWatch::open(const std::string& directory) {
  UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify || ::inotify_add_watch(inotify.get(), directory.c_str(), kEvents) < 0) {
    const int error = errno;
    return fail(Errc::Denied, directory + ": cannot be watched: " + std::strerror(error), error);
  }
  return DirectoryWatch(std::move(inotify));
}

bool DirectoryWatch::take_changes() {
  bool any = false;
  std::array<char, 4096> events;
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
    any = true;
  }
  return any;
}

}  // namespace shunt
