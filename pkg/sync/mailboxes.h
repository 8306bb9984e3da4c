// The doors from the watch threads to the sync thread, and what comes through them into the store.
#pragma once

#include <cstddef>
#include <memory>

#include "base/mailbox.h"
#include "base/wake_fd.h"
#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"
#include "store/object_store.h"

namespace shunt::sync {

struct Mailboxes {
  WakeFd wake;
  Mailbox<std::shared_ptr<const kube::Service>> services{wake};
  Mailbox<std::shared_ptr<const kube::EndpointSlice>> slices{wake};
  Mailbox<std::shared_ptr<const kube::Node>> nodes{wake};
  Mailbox<std::shared_ptr<const kube::ServiceCidr>> service_cidrs{wake};
};

// How many objects came, and whether something was said of the Node.
struct Drained {
  std::size_t services = 0;
  std::size_t slices = 0;
  bool node = false;
  bool any() const { return services != 0 || slices != 0 || node; }
};

// Takes all that is pending. The sync thread.
Drained drain(Mailboxes& mailboxes, store::ObjectStore& store);

}  // namespace shunt::sync
