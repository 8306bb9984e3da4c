// Looks at what a back end wrote from outside it, for /readyz and the metrics: whether the program
// is there, whether a frontend is, and how many connections each Service was given. Writes nothing.
//
// With means of its own, so that a look never waits for the sync thread; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "desired/frontend.h"

namespace shunt::backend {

class Probe {
 public:
  virtual ~Probe() = default;

  // Whatever does not depend on Services is there.
  virtual Result<bool> program_is_whole() = 0;
  virtual Result<bool> has(const desired::FrontendKey& frontend) = 0;
  virtual Result<bool> has_any() = 0;  // frontend

  struct Connections {
    std::string service;  // "ns/name:port"; as much of it as a comment holds
    net::Protocol protocol = net::Protocol::Tcp;
    std::uint64_t count = 0;  // new connections since the Service came, or the back end's things
  };
  // Of every service port, in no order; all frontends of one together. Nothing where the back end
  // does not count.
  virtual Result<std::vector<Connections>> new_connections() = 0;
};

}  // namespace shunt::backend
