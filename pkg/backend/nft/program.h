// The constant program: everything in our table that does not depend on what the cluster says
// (design.md §3).
//
// Settings shape it; a change of settings is another program with another version. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "backend/local_detector.h"
#include "backend/nft/ruleset.h"
#include "net/ip_address.h"

namespace shunt::backend::nft {

struct ProgramSettings {
  std::uint32_t masquerade_mark = 0x4000;
  bool masquerade_all = false;
  LocalDetector detector;
  // Answers of our endpoints that conntrack finds invalid are dropped. Off when the kernel is told
  // not to look so closely (conntrack.tcpBeLiberal).
  bool drop_invalid = true;
  // Not zero: the program of IPVS mode. Frontends without slots are left to IPVS, and their packets
  // get this mark, by which the host takes them for its own (a rule of routing, not of this table).
  std::uint32_t local_mark = 0;
  bool operator==(const ProgramSettings&) const = default;
};

Program make_program(net::Family family, const ProgramSettings& settings);

}  // namespace shunt::backend::nft
