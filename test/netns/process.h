// A program started inside a network namespace and never forgotten: the destructor ends it.
//
// Start processes from a thread that lives on: the kernel ends a child when the thread that started
// it ends (PR_SET_PDEATHSIG), which is what cleans up after a test that crashed.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "netns/netns.h"

namespace shunt::lab {

struct ProcessSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value", added to our own
  std::string log_file;          // stdout and stderr are appended to it; "" leaves them as ours
};

class Process {
 public:
  Process(const Netns& where, const ProcessSpec& spec);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  bool running();
  // The exit status as waitpid tells it, or nothing when the time was up first.
  std::optional<int> wait(std::chrono::milliseconds timeout);
  void signal(int signal_number) const;
  // SIGTERM; SIGKILL once the grace is over. Answers the exit status.
  int terminate(std::chrono::milliseconds grace = std::chrono::seconds(5));
  void kill();

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<int> status_;
};

// Runs a program to its end, hands it `input` and answers its output; throws when it fails.
std::string run_program(const std::vector<std::string>& argv, const std::string& input = {});

}  // namespace shunt::lab
