// The cluster's state from a directory of manifests, where there is no API server: what a Reflector
// is to an API server, this is to files (pkg/manifests/README.md). It keeps mailboxes equal to the
// directory, with a complete list of all four resources whenever something changed.
//
// While the directory cannot be listed nothing is delivered: what was known stays in force.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/backoff.h"
#include "base/mailbox.h"
#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"

namespace shunt::manifests {

// Where the objects go. The mailboxes must outlive the Source, which is the only one to fill them.
struct Outboxes {
  Mailbox<std::shared_ptr<const kube::Service>>& services;
  Mailbox<std::shared_ptr<const kube::EndpointSlice>>& slices;
  Mailbox<std::shared_ptr<const kube::Node>>& nodes;
  Mailbox<std::shared_ptr<const kube::ServiceCidr>>& service_cidrs;
};

struct SourceOptions {
  std::string directory;
  std::string node_name;  // other Nodes are not delivered, as an API server is asked for ours alone
  // After the last change that is seen; at most twenty times as long after the first.
  Millis debounce{50};
  // For what inotify does not see: targets of symlinks, network file systems.
  Millis look_every{10'000};
};

struct SourceStatus {
  std::uint64_t lists = 0;  // delivered
  std::size_t files = 0;
  std::size_t objects = 0;
  std::uint64_t problems = 0;  // said in the log so far
};

class Source {
 public:
  Source(SourceOptions options, Outboxes outboxes);
  ~Source();  // stops
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  void start();
  void stop();                  // at once, but for a file that is being read
  SourceStatus status() const;  // any thread

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shunt::manifests
