#include "snapshot/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/fnv1a.h"
#include "base/unique_fd.h"
#include "snapshot/archive.h"
#include "snapshot/objects.h"

namespace shunt::snapshot {
namespace {

// The head: a mark, the version, how many bytes follow, and their hash. Numbers little-endian.
constexpr std::string_view kMark = "kube-shunt snapshot\n";
constexpr std::uint64_t kVersion = 2;
constexpr std::size_t kHeadSize = kMark.size() + 3 * sizeof(std::uint64_t);

enum class Record : std::uint8_t { End, Service, Slice, Node, ServiceCidr };

constexpr std::size_t kPiece = std::size_t{1} << 20;  // so much is written at a time

void append_fixed(std::string& out, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) {
    out += static_cast<char>(value >> shift);
  }
}
std::uint64_t fixed_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(bytes[at + i])} << (8 * i);
  }
  return value;
}

std::string head_of(std::uint64_t size, std::uint64_t hash) {
  std::string out(kMark);
  append_fixed(out, kVersion);
  append_fixed(out, size);
  append_fixed(out, hash);
  return out;
}

tl::unexpected<Error> system_failure(const std::string& what) {
  const int error = errno;
  return fail(Errc::Again, what + ": " + std::strerror(error), error);
}

Result<> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) {
      return system_failure("writing");
    }
    bytes.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  return {};
}

// Hashes and writes what it is given, in pieces. The first error stays.
class Body {
 public:
  explicit Body(int fd) : fd_(fd) {}

  template <typename T>
  void add(Record record, const T& object) {
    encoder.number(std::uint64_t{static_cast<std::uint8_t>(record)});
    put(encoder, object);
    flush(kPiece);
  }
  void flush(std::size_t threshold) {
    if (encoder.bytes().size() < threshold) {
      return;
    }
    if (result) {
      hash.bytes(encoder.bytes());
      size += encoder.bytes().size();
      result = write_all(fd_, encoder.bytes());
    }
    encoder.clear();
  }

  Encoder encoder;
  Fnv1a hash;
  std::uint64_t size = 0;
  Result<> result;

 private:
  int fd_;
};

std::int64_t unix_millis(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

Result<std::uint64_t> write_open_file(
    int fd, const std::string& node_name, WallTime now, const store::Image& image) {
  if (auto written = write_all(fd, std::string(kHeadSize, '\0')); !written) {
    return tl::unexpected(written.error());
  }
  Body body(fd);
  body.encoder.text(node_name);
  body.encoder.signed_number(unix_millis(now));
  body.encoder.flag(image.service_cidrs_known);
  image.each_service([&](const kube::Service& one) { body.add(Record::Service, one); });
  image.each_slice([&](const kube::EndpointSlice& one) { body.add(Record::Slice, one); });
  if (image.node) {
    body.add(Record::Node, *image.node);
  }
  for (const auto& cidr : image.service_cidrs) {
    body.add(Record::ServiceCidr, *cidr);
  }
  body.encoder.number(std::uint64_t{static_cast<std::uint8_t>(Record::End)});
  body.flush(0);
  if (!body.result) {
    return tl::unexpected(body.result.error());
  }
  // The head comes last: until then the file is nobody's.
  const std::string head = head_of(body.size, body.hash.value());
  if (::pwrite(fd, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()) ||
      ::fsync(fd) != 0) {
    return system_failure("writing");
  }
  return body.size + head.size();
}

// So that the rename itself outlives a loss of power.
void sync_directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : path.substr(0, slash);
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)::fsync(fd.get());  // the file is whole in any case: the old one or the new one
}

template <typename T>
void take_object(Decoder& in, std::vector<std::shared_ptr<const T>>& out) {
  T object;
  take(in, object);
  if (in.good()) {
    out.push_back(std::make_shared<const T>(std::move(object)));
  }
}

void take_records(Decoder& in, Contents& out) {
  std::vector<std::shared_ptr<const kube::Node>> nodes;
  for (;;) {
    std::uint64_t record = 0;
    in.number(record);
    if (!in.good() || record == std::uint64_t{static_cast<std::uint8_t>(Record::End)}) {
      break;
    }
    switch (record) {
      case static_cast<std::uint8_t>(Record::Service):
        take_object(in, out.services);
        break;
      case static_cast<std::uint8_t>(Record::Slice):
        take_object(in, out.slices);
        break;
      case static_cast<std::uint8_t>(Record::Node):
        take_object(in, nodes);
        break;
      case static_cast<std::uint8_t>(Record::ServiceCidr):
        take_object(in, out.service_cidrs);
        break;
      default:
        in.spoil();
    }
  }
  if (!nodes.empty()) {
    out.node = std::move(nodes.back());
  }
}

Result<std::string> read_bytes(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    const bool absent = errno == ENOENT;
    auto failure = system_failure("opening");
    failure.value().code = absent ? Errc::NotFound : Errc::Denied;
    return failure;
  }
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) {
    return system_failure("looking");
  }
  if (!S_ISREG(about.st_mode) || about.st_size > static_cast<off_t>(kMaxFile)) {
    return fail(Errc::Invalid, "no regular file of 512 MiB at most");
  }
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno != EINTR) {
      return system_failure("reading");
    }
    if (n == 0) {
      break;
    }
    have += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  bytes.resize(have);
  return bytes;
}

template <typename T>
bool preload(
    std::vector<std::shared_ptr<const T>> objects, Mailbox<std::shared_ptr<const T>>& box) {
  std::vector<std::pair<std::string, std::shared_ptr<const T>>> known;
  known.reserve(objects.size());
  for (auto& object : objects) {
    std::string key = kube::to_string(object->meta.key);
    known.emplace_back(std::move(key), std::move(object));
  }
  return box.preload(std::move(known));
}

}  // namespace

Result<std::uint64_t> write_file(
    const std::string& path,
    const std::string& node_name,
    WallTime now,
    const store::Image& image) {
  // One writer a path; what an earlier one left behind is written over.
  const std::string temporary = path + ".new";
  (void)::unlink(temporary.c_str());  // most often there is none
  const UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) {
    return system_failure(temporary);
  }
  auto size = write_open_file(fd.get(), node_name, now, image);
  if (size && ::rename(temporary.c_str(), path.c_str()) != 0) {
    size = system_failure("renaming");
  }
  if (!size) {
    (void)::unlink(temporary.c_str());  // we could not do more about it
    return fail(path, size.error());
  }
  sync_directory_of(path);
  return size;
}

Result<Contents> parse(std::string_view file, const std::string& node_name) {
  if (!file.starts_with(kMark.substr(0, std::min(file.size(), kMark.size()))) || file.empty()) {
    return fail(Errc::Invalid, "it is no snapshot of kube-shunt");
  }
  if (file.size() < kHeadSize) {
    return fail(Errc::Invalid, "it is cut short");
  }
  const std::uint64_t version = fixed_at(file, kMark.size());
  if (version != kVersion) {
    return fail(
        Errc::Unsupported,
        "it is of version " + std::to_string(version) + ", and we know version " +
            std::to_string(kVersion));
  }
  const std::string_view body = file.substr(kHeadSize);
  const std::uint64_t size = fixed_at(file, kMark.size() + 8);
  if (size != body.size()) {
    return fail(Errc::Invalid, size > body.size() ? "it is cut short" : "it is too long");
  }
  Fnv1a hash;
  hash.bytes(body);
  if (hash.value() != fixed_at(file, kMark.size() + 16)) {
    return fail(Errc::Invalid, "it is corrupt: its checksum is another");
  }
  Decoder in(body);
  Contents out;
  std::int64_t millis = 0;
  in.text(out.node_name);
  in.signed_number(millis);
  in.flag(out.service_cidrs_known);
  if (in.good() && out.node_name != node_name) {
    return fail(Errc::Invalid, "it is of another node");
  }
  constexpr std::int64_t kMaxMillis = std::int64_t{1} << 43;  // in some 250 years
  out.written =
      WallTime(std::chrono::milliseconds(std::min(std::max<std::int64_t>(millis, 0), kMaxMillis)));
  take_records(in, out);
  if (!in.good() || !in.at_end()) {
    return fail(Errc::Invalid, "it is corrupt: what it holds makes no sense");
  }
  return out;
}

Result<Contents> read_file(const std::string& path, const std::string& node_name) {
  const auto bytes = read_bytes(path);
  if (!bytes) {
    return fail(path, bytes.error());
  }
  auto contents = parse(*bytes, node_name);
  if (!contents) {
    return fail(path, contents.error());
  }
  return contents;
}

Delivered deliver(Contents contents, Outboxes outboxes) {
  Delivered out;
  if (contents.node) {
    out.nodes = preload<kube::Node>({std::move(contents.node)}, outboxes.nodes);
  }
  if (contents.service_cidrs_known) {
    out.service_cidrs = preload(std::move(contents.service_cidrs), outboxes.service_cidrs);
  }
  out.slices = preload(std::move(contents.slices), outboxes.slices);
  out.services = preload(std::move(contents.services), outboxes.services);
  return out;
}

}  // namespace shunt::snapshot
