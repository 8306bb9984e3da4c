// Work spread over child processes, a child for each piece: a piece that crashes takes nothing with
// it, and each has process-wide state (signal handlers, names made of the process id) of its own.
//
// Call from a process with one thread: a child inherits that thread only. SIGINT, SIGTERM and
// SIGHUP end the children first, with SIGTERM, so that they can clear away what they made.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shunt::conformance {

struct Child {
  std::function<std::string()> work;  // runs in the child; may throw std::exception
  std::chrono::seconds limit{0};      // the child is killed when it takes longer
  std::chrono::seconds expected{0};   // those that take longest are started first
};

struct ChildEnd {
  std::optional<std::string> report;  // what `work` answered
  std::string problem;                // otherwise: why there is none
};

// Runs all, `at_once` at a time, and hands each end to `done` in the parent as it comes. Answers
// the signal that interrupted it (the rest is then not run), or 0.
int run_children(
    const std::vector<Child>& children,
    std::size_t at_once,
    const std::function<void(std::size_t index, ChildEnd end)>& done);

}  // namespace shunt::conformance
