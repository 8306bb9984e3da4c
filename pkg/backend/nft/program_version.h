// Tells programs apart: a hash of all that a program writes besides elements. Pure.
#pragma once

#include <string>

#include "backend/nft/ruleset.h"

namespace shunt::backend::nft {

// Sixteen hexadecimal digits. Comments do not count: they change nothing that a packet sees.
std::string program_version(const Program& program);

}  // namespace shunt::backend::nft
