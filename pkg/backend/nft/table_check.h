// Whether a table in the kernel is the one that a program describes. Pure.
#pragma once

#include "backend/nft/program.h"
#include "backend/nft/transport.h"

namespace shunt::backend::nft {

// Its version is the program's, and so are its chains, the number of rules in each, and its sets;
// affinity's chains and maps count as the program's. A table whose comment is ours and whose rules
// somebody removed is not ours to trust.
bool is_whole(const TableState& state, const Program& program);

}  // namespace shunt::backend::nft
