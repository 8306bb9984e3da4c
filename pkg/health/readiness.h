// Whether this node's Services work, as /readyz says it; kube-proxy has no such page. Pure.
//
// /healthz asks whether the daemon keeps up, this asks for more: that it has ever finished, that
// the kernel still has what was written, and that what it knows is fresh. For roll-outs and for
// people; nothing restarts a daemon for it. An object that was set aside does not make a node
// unready: it harms only itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"

namespace shunt::health {

struct Readiness {
  struct Contact {
    std::string resource;       // "services"
    std::optional<Millis> age;  // since the API server was last heard of it; nothing: never yet
  };

  bool synced = false;         // the first complete state was written
  bool in_sync = false;        // what was received is in the kernel, or waits for a moment only
  bool hooks_present = false;  // the kernel has our table and its program
  std::optional<bool> canary;  // a lookup in the kernel found what it should; nothing: not asked
  std::vector<Contact> contacts;
  Millis max_contact_age{0};
  std::size_t set_aside = 0;  // frontends that the kernel refused
};

struct ReadyAnswer {
  int status = 0;  // 200 or 503
  std::string body;  // JSON: {"ready":…,"checks":[{"name":…,"ok":…,"why":…}…],"setAside":…}
};

ReadyAnswer answer(const Readiness& readiness);

}  // namespace shunt::health
