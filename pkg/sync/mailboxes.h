// The doors from the watch threads to the sync thread, and what comes through them into the store.
#pragma once

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

// Takes all that is pending. The sync thread.
void drain(Mailboxes& mailboxes, store::ObjectStore& store);

}  // namespace shunt::sync
