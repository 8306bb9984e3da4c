// The last known good on disk (pkg/snapshot/README.md): written whole or not at all, read whole or
// not at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mailbox.h"
#include "base/result.h"
#include "store/image.h"

namespace shunt::snapshot {

using WallTime = std::chrono::system_clock::time_point;

inline constexpr std::size_t kMaxFile = std::size_t{512} << 20;

// Replaces `path` by what the image holds: a temporary file beside it, mode 0600, made durable and
// renamed. Answers its size. Any thread.
Result<std::uint64_t> write_file(
    const std::string& path, const std::string& node_name, WallTime now, const store::Image& image);

struct Contents {
  std::string node_name;
  WallTime written;
  std::vector<std::shared_ptr<const kube::Service>> services;
  std::vector<std::shared_ptr<const kube::EndpointSlice>> slices;
  std::shared_ptr<const kube::Node> node;  // null: none was known
  std::vector<std::shared_ptr<const kube::ServiceCidr>> service_cidrs;
  bool service_cidrs_known = false;
};

// Errors: NotFound; Unsupported (written by another version); Invalid (torn, foreign, corrupt, or
// of another node). The text names the file and says which. The whole file is checked before
// anything of it counts.
Result<Contents> read_file(const std::string& path, const std::string& node_name);
// The same of bytes that are there.
Result<Contents> parse(std::string_view file, const std::string& node_name);

// Where the contents go: mailboxes that the reflectors fill as well.
struct Outboxes {
  Mailbox<std::shared_ptr<const kube::Service>>& services;
  Mailbox<std::shared_ptr<const kube::EndpointSlice>>& slices;
  Mailbox<std::shared_ptr<const kube::Node>>& nodes;
  Mailbox<std::shared_ptr<const kube::ServiceCidr>>& service_cidrs;
};

// Whether the mailbox took it: not when the API server had said anything of that resource before.
struct Delivered {
  bool services = false;
  bool slices = false;
  bool nodes = false;
  bool service_cidrs = false;
};

// As complete lists that are older than every list of the API server (Mailbox::preload), so any
// thread, at any time, also while a reflector is in the middle of one.
Delivered deliver(Contents contents, Outboxes outboxes);

}  // namespace shunt::snapshot
