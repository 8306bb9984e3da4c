// Looks at our table from outside the back end, for /readyz and the metrics: whether the program is
// there, whether a frontend is, and how many connections each Service was given. Writes nothing.
//
// A socket of its own, so that a look never waits for the sync thread; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/nft/program.h"
#include "backend/nft/wire.h"
#include "desired/frontend.h"

namespace shunt::backend::nft {

class Probe {
 public:
  static Result<std::unique_ptr<Probe>> open(net::Family family, const ProgramSettings& settings);

  // Every chain, rule and set of the program is there, and none besides.
  Result<bool> program_is_whole();
  Result<bool> has(const desired::FrontendKey& frontend);
  Result<bool> has_any();  // frontend; lists all of them

  struct Connections {
    std::string service;  // "ns/name:port"; as much of it as a comment holds
    net::Protocol protocol = net::Protocol::Tcp;
    std::uint64_t count = 0;  // new connections since the Service came, or the table
  };
  // Of every service port, in no order; all frontends of one together. Takes 10 ms at 10 000
  // Services, and four times as long for twice as many (README.md, "A million elements").
  Result<std::vector<Connections>> new_connections();

 private:
  Probe(Program program, std::unique_ptr<KernelTransport> transport);

  Program program_;
  std::unique_ptr<KernelTransport> transport_;
};

}  // namespace shunt::backend::nft
