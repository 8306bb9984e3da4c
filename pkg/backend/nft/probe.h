// The look at our table (backend/probe.h), over a socket of its own.
#pragma once

#include <memory>
#include <vector>

#include "backend/nft/program.h"
#include "backend/nft/wire.h"
#include "backend/probe.h"
#include "desired/frontend.h"

namespace shunt::backend::nft {

class Probe final : public backend::Probe {
 public:
  static Result<std::unique_ptr<Probe>> open(net::Family family, const ProgramSettings& settings);

  // Every chain, rule and set of the program is there, and none besides.
  Result<bool> program_is_whole() override;
  Result<bool> has(const desired::FrontendKey& frontend) override;
  Result<bool> has_any() override;  // lists all of them

  // Takes 10 ms at 10 000 Services, and four times as long for twice as many (README.md, "A million
  // elements").
  Result<std::vector<Connections>> new_connections() override;

 private:
  Probe(Program program, std::unique_ptr<KernelTransport> transport);

  Program program_;
  std::unique_ptr<KernelTransport> transport_;
};

}  // namespace shunt::backend::nft
