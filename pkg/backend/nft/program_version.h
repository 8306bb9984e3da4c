// Tells programs apart: a hash of all that a program writes besides elements. Pure.
#pragma once

#include <string>

#include "backend/nft/ruleset.h"

namespace shunt::backend::nft {

// Sixteen hexadecimal digits. Comments do not count: they change nothing that a packet sees.
// `sample` stands for what is added to the table as Services come.
std::string program_version(const Program& program, const Fragment& sample);

}  // namespace shunt::backend::nft
