#include "netns/netns.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>

namespace shunt::lab {
namespace {

constexpr const char* kDirectory = "/run/netns";
constexpr std::string_view kPrefix = "shunt-";

std::string path_of(const std::string& name) { return std::string(kDirectory) + "/" + name; }

// What iproute2 does on its first use: the directory must be a shared mount, or a namespace bound
// there stays invisible to other mount namespaces.
void prepare_directory() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::filesystem::create_directories(kDirectory);
    if (::mount("", kDirectory, "none", MS_SHARED | MS_REC, nullptr) == 0) {
      return;
    }
    if (::mount(kDirectory, kDirectory, "none", MS_BIND | MS_REC, nullptr) != 0 ||
        ::mount("", kDirectory, "none", MS_SHARED | MS_REC, nullptr) != 0) {
      raise_errno("cannot prepare /run/netns");
    }
  });
}

// Paths for the signal handler, which may neither allocate nor lock: slots are claimed and never
// given back, and a removed namespace leaves a path that no longer exists.
struct Slot {
  std::array<char, 128> path{};
  std::atomic<pid_t> owner{0};  // a forked child inherits the slots, not the namespaces
};
constexpr std::size_t kSlots = 4096;
std::array<Slot, kSlots> g_slots;          // NOLINT(readability-identifier-naming): g_ says global
std::atomic<std::size_t> g_next_slot = 0;  // NOLINT(readability-identifier-naming): as above

void remember_for_signals(const std::string& path) {
  Slot& slot = g_slots[g_next_slot++ % kSlots];
  slot.owner = 0;
  if (path.size() < slot.path.size()) {
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.owner = ::getpid();
  }
}

void remove_all_and_die(int signal_number) {
  for (const Slot& slot : g_slots) {
    if (slot.owner == ::getpid()) {
      ::umount2(slot.path.data(), MNT_DETACH);
      ::unlink(slot.path.data());
    }
  }
  ::raise(signal_number);  // SA_RESETHAND: the second time it kills
}

std::vector<std::string> all_namespaces() {
  std::vector<std::string> names;
  std::error_code ignored;  // no directory: no namespaces
  for (const auto& entry : std::filesystem::directory_iterator(kDirectory, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The process number in "shunt-<number>-...", if that is what the name is.
std::optional<pid_t> owner_process(std::string_view name) {
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  name.remove_prefix(kPrefix.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end == name.data() + name.size() || *end != '-' || pid <= 0) {
    return std::nullopt;
  }
  return pid;
}

}  // namespace

void raise_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string namespace_name(std::string_view owner, std::string_view place) {
  return std::string(kPrefix).append(owner).append("-").append(place);
}

Netns Netns::create(std::string name, const std::function<void()>& prepare) {
  prepare_directory();
  const std::string path = path_of(name);
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      if (::unshare(CLONE_NEWNET) != 0) {
        raise_errno("cannot create a network namespace");
      }
      if (prepare) {
        prepare();
      }
      const UniqueFd mount_point(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0));
      if (!mount_point) {
        raise_errno("cannot create " + path);
      }
      if (::mount("/proc/thread-self/ns/net", path.c_str(), "none", MS_BIND, nullptr) != 0) {
        raise_errno("cannot bind " + path);
      }
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) {
    std::rethrow_exception(thrown);
  }
  if (owner_process(name) == ::getpid()) {
    remember_for_signals(path);
  }
  return open(std::move(name));
}

Netns Netns::open(std::string name) {
  UniqueFd fd(::open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    raise_errno("no network namespace " + name);
  }
  return {std::move(name), std::move(fd)};
}

void Netns::enter() const {
  if (::setns(fd_.get(), CLONE_NEWNET) != 0) {
    raise_errno("cannot enter " + name_);
  }
}

void remove_namespace(const std::string& name) {
  const std::string path = path_of(name);
  ::umount2(path.c_str(), MNT_DETACH);
  ::unlink(path.c_str());
}

std::vector<std::string> namespaces_of(std::string_view owner) {
  std::vector<std::string> names = all_namespaces();
  const std::string prefix = namespace_name(owner, "");
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

void reap_namespaces() {
  for (const std::string& name : all_namespaces()) {
    const std::optional<pid_t> pid = owner_process(name);
    if (pid && ::kill(*pid, 0) != 0 && errno == ESRCH) {
      remove_namespace(name);
    }
  }
}

void remove_namespaces_on_signals() {
  struct sigaction action {};
  action.sa_handler = remove_all_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaction(signal_number, &action, nullptr);
  }
}

void write_sysctl(std::string path, std::string_view value) {
  if (path.find('/') == std::string::npos) {
    std::replace(path.begin(), path.end(), '.', '/');
  }
  path.insert(0, "/proc/sys/");
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    raise_errno("cannot write " + path);
  }
}

}  // namespace shunt::lab
