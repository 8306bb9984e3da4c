// Where the cluster's state comes from: an API server, with the credentials and formats of the
// options; or a directory of manifests, in standalone mode.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/connector.h"
#include "apiserver/reflector.h"
#include "base/result.h"
#include "config/options.h"
#include "kube/notice.h"
#include "sync/mailboxes.h"

namespace shunt::app {

class Sources {
 public:
  struct Resource {
    std::string name;  // "services"
    apiserver::ReflectorStatus status;
    // Since the API server was last heard of it; nothing: never yet.
    std::optional<Clock::duration> contact_age() const {
      return status.last_contact == Clock::time_point{}
                 ? std::nullopt
                 : std::optional(Clock::now() - status.last_contact);
    }
  };

  virtual ~Sources() = default;
  virtual void start() = 0;
  virtual void stop() = 0;  // within a second or so
  // Of an API server; empty where there is none.
  virtual std::vector<Resource> resources() const = 0;  // any thread
  virtual std::string name() const = 0;                 // "https://10.0.0.1:6443", for the log
  // For an operator's eyes, where there is somebody to tell; any thread, never waits.
  virtual void tell(const kube::Notice& notice) { (void)notice; }
};

struct SourceHooks {
  apiserver::RequestObserver on_request;
  std::function<void(const char* resource)> unreadable;  // an object could not be read
};

// Reads credentials; connects to nobody yet. `mailboxes` outlive it.
Result<std::unique_ptr<Sources>> open_sources(
    const config::Options& options, sync::Mailboxes& mailboxes, const SourceHooks& hooks);

}  // namespace shunt::app
