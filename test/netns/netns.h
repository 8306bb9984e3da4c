// A network namespace under its name in /run/netns, so that `ip netns` and `nft` can look inside.
//
// Names are shunt-<owner>-<place>. An owner that is a number is a process: its namespaces go when
// it goes, and `reap_namespaces` removes what a killed process left. Any other owner is a lab that
// somebody keeps by name (`lab up NAME`).
//
// The lab is set-up code for tests: what fails here throws, since no test can go on without its
// network.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace shunt::lab {

class Netns {
 public:
  // Runs `prepare` inside the new namespace, before anything else can see it: sysctls that new
  // interfaces inherit.
  static Netns create(std::string name, const std::function<void()>& prepare = {});
  static Netns open(std::string name);

  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }

  // Calls `work` inside the namespace, on a thread of its own, and hands back its answer or what it
  // threw. Sockets opened in there stay in there, whoever uses them later.
  template <typename Work>
  std::invoke_result_t<Work> run(Work work) const;

  // For a thread of the caller's own: moves it in for good.
  void enter() const;

 private:
  Netns(std::string name, UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}

  std::string name_;
  UniqueFd fd_;
};

// The name goes at once; the namespace itself with its last socket and process.
void remove_namespace(const std::string& name);
std::vector<std::string> namespaces_of(std::string_view owner);
std::string namespace_name(std::string_view owner, std::string_view place);

// Removes the namespaces of processes that no longer live.
void reap_namespaces();

// SIGINT, SIGTERM and SIGHUP remove the namespaces that this process created under its own number,
// then end it. Called by every Lab, since test frameworks put their own handlers back in between.
void remove_namespaces_on_signals();

// Writes /proc/sys/<path> of the calling thread's namespace, dots or slashes between the words.
// Throws std::system_error with errno.
[[noreturn]] void raise_errno(const std::string& what);

void write_sysctl(std::string path, std::string_view value);

template <typename Work>
std::invoke_result_t<Work> Netns::run(Work work) const {
  using Answer = std::invoke_result_t<Work>;
  std::exception_ptr thrown;
  auto guarded = [&](auto&& body) {
    try {
      enter();
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  if constexpr (std::is_void_v<Answer>) {
    std::thread([&] { guarded(work); }).join();
    if (thrown) {
      std::rethrow_exception(thrown);
    }
  } else {
    Answer answer{};
    std::thread([&] { guarded([&] { answer = work(); }); }).join();
    if (thrown) {
      std::rethrow_exception(thrown);
    }
    return answer;
  }
}

}  // namespace shunt::lab
