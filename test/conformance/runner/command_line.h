// The command line of `conformance`, as values.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "packet/packet_kind.h"
#include "runner/runner.h"

namespace shunt::conformance {

struct CommandLine {
  std::vector<std::filesystem::path> roots;
  RunOptions options;
  packet::PacketFlowOptions packet_flow;
  bool help = false;
};

extern const char* const kUsage;

// What is wrong with it, or nothing. `line` holds the defaults beforehand.
std::optional<std::string> parse_command_line(
    const std::vector<std::string>& arguments, CommandLine& line);

}  // namespace shunt::conformance
