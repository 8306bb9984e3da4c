// Runs another program to its end: argv, environment, input, bounded output, a deadline and a way
// to stop early. For exec credential plugins and for iptables-restore.
//
// No shell: argv[0] is looked up in PATH when it holds no slash, and nothing is interpreted. The
// program gets a process group of its own, so that a deadline also ends what it started.
// Any thread, and several at once; the caller's thread waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace shunt {

struct Command {
  std::vector<std::string> argv{};
  // Added to (or put in place of) the variables of this process.
  std::vector<std::pair<std::string, std::string>> env{};
  std::string input{};  // its standard input, then end of file
  std::size_t max_output = std::size_t{1} << 20;
  std::size_t max_diagnostics = std::size_t{64} << 10;  // of standard error; the rest is dropped
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
  int stop_fd = -1;  // readable: end the program and return Errc::Again with ECANCELED
};

struct CommandOutput {
  int exit_code = 0;  // 128 + n when signal n ended it
  std::string out;
  std::string diagnostics;  // standard error
};

// Errors when it could not be started (NotFound, Denied), wrote more than max_output (Invalid), ran
// past its deadline (Again, ETIMEDOUT) or was stopped. A bad exit code is not an error here. No
// error holds any output or any argument but argv[0]: both may be secret.
Result<CommandOutput> run(const Command& command);

}  // namespace shunt
