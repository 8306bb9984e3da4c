#include "manifests/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/fnv1a.h"
#include "base/handle.h"
#include "base/unique_fd.h"

namespace shunt::manifests {
namespace {

using Dir = Handle<DIR, ::closedir>;

// Of the clocks of file systems; a write within it may leave the times as they were.
constexpr std::int64_t kTickNs = 50'000'000;

std::optional<Format> format_of(std::string_view name) {
  if (name.starts_with('.')) {
    return std::nullopt;
  }
  if (name.ends_with(".json")) {
    return Format::Json;
  }
  return name.ends_with(".yaml") || name.ends_with(".yml") ? std::optional(Format::Yaml)
                                                           : std::nullopt;
}

Result<std::set<std::string>> manifest_names(const std::string& path) {
  const Dir directory(::opendir(path.c_str()));
  if (!directory) {
    return fail(Errc::NotFound, path + ": " + std::strerror(errno), errno);
  }
  std::set<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (format_of(entry->d_name)) {
      names.insert(entry->d_name);
    }
  }
  if (errno != 0) {
    return fail(Errc::Again, path + ": " + std::strerror(errno), errno);
  }
  return names;
}

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::int64_t now_ns() {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);  // cannot fail
  return nanoseconds(now);
}

tl::unexpected<Error> unreadable(int error) {
  return fail(Errc::Invalid, std::string("cannot be read: ") + std::strerror(error), error);
}

Result<std::string> read_all(int fd, std::size_t size) {
  std::string text(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t n = ::read(fd, text.data() + have, size - have);
    if (n < 0 && errno != EINTR) {
      return unreadable(errno);
    }
    if (n == 0) {
      break;  // it became shorter; its times say so, too
    }
    have += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  text.resize(have);
  return text;
}

// The objects that are in `out` already win.
template <typename T>
void merge_kind(
    std::string_view kind,
    const std::string& file,
    const std::vector<std::shared_ptr<const T>>& from,
    std::map<kube::ObjectKey, std::string>& owners,
    std::vector<std::shared_ptr<const T>>& out,
    std::vector<std::string>& doubles) {
  for (const auto& object : from) {
    const auto [owner, is_new] = owners.emplace(object->meta.key, file);
    if (is_new) {
      out.push_back(object);
      continue;
    }
    std::string what(file);
    what.append(": ").append(kind).append(" ").append(kube::to_string(object->meta.key));
    what.append(": set aside, it is in ").append(owner->second).append(" as well");
    doubles.push_back(std::move(what));
  }
}

}  // namespace

Result<Directory::Look> Directory::look() {
  const auto names = manifest_names(path_);
  if (!names) {
    return tl::unexpected(names.error());
  }
  Look look;
  look.changed =
      std::erase_if(files_, [&](const auto& entry) { return !names->contains(entry.first); }) > 0;
  for (const std::string& name : *names) {
    look.changed = refresh(name, files_[name], look) || look.changed;
  }
  if (look.changed) {
    merge(look);
  }
  return look;
}

bool Directory::refresh(const std::string& name, File& file, Look& look) const {
  std::set<std::string> said;
  const auto say = [&](const std::string& what) {
    std::string line = name + ": " + what;
    if (!file.said.contains(line)) {
      look.news.push_back(line);
    }
    said.insert(std::move(line));
  };
  const auto give_up = [&](const std::string& what) {
    say(what + ", it counts as it was");
    file.said = std::move(said);
    return false;
  };
  // Not a FIFO, which would keep us waiting.
  const UniqueFd fd(::open((path_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!fd || ::fstat(fd.get(), &about) != 0) {
    return give_up(std::string("cannot be read: ") + std::strerror(errno));
  }
  const Stamp stamp{
      about.st_dev,
      about.st_ino,
      about.st_size,
      nanoseconds(about.st_mtim),
      nanoseconds(about.st_ctim)};
  if (stamp == file.stamp) {
    return false;
  }
  if (!S_ISREG(about.st_mode) || about.st_size > static_cast<off_t>(kMaxFile)) {
    file.stamp = stamp;
    return give_up("no regular file of " + std::to_string(kMaxFile >> 20) + " MiB at most");
  }
  const std::int64_t age = now_ns() - std::max(stamp.modified_ns, stamp.changed_ns);
  const bool settled = age > kTickNs || age < -kTickNs;  // a time to come is as good as any
  file.stamp = settled ? stamp : Stamp{};
  look.unsettled = look.unsettled || !settled;
  const auto text = read_all(fd.get(), static_cast<std::size_t>(about.st_size));
  if (!text) {
    file.stamp = {};
    return give_up(text.error().what);
  }
  Fnv1a hash;
  hash.bytes(*text);
  if (file.content == hash.value()) {
    return false;
  }
  auto manifest = parse_manifest(*text, *format_of(name));
  if (!manifest) {
    return give_up(manifest.error().what);
  }
  for (const std::string& complaint : manifest->complaints) {
    say(complaint);
  }
  file.said = std::move(said);
  file.objects = std::move(manifest->objects);
  file.content = hash.value();
  return true;
}

void Directory::merge(Look& look) {
  Objects merged;
  std::vector<std::string> doubles;
  std::map<kube::ObjectKey, std::string> services;
  std::map<kube::ObjectKey, std::string> slices;
  std::map<kube::ObjectKey, std::string> nodes;
  std::map<kube::ObjectKey, std::string> cidrs;
  for (const auto& [name, file] : files_) {
    const Objects& from = file.objects;
    merge_kind("Service", name, from.services, services, merged.services, doubles);
    merge_kind("EndpointSlice", name, from.slices, slices, merged.slices, doubles);
    merge_kind("Node", name, from.nodes, nodes, merged.nodes, doubles);
    merge_kind("ServiceCIDR", name, from.service_cidrs, cidrs, merged.service_cidrs, doubles);
  }
  objects_ = std::move(merged);
  for (const std::string& line : doubles) {
    if (!doubles_said_.contains(line)) {
      look.news.push_back(line);
    }
  }
  doubles_said_ = {doubles.begin(), doubles.end()};
}

}  // namespace shunt::manifests
