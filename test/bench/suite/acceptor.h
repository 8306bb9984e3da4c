// Accepts on port 8080 of every pod of the load, and closes.
#pragma once

#include <atomic>
#include <thread>

#include "base/unique_fd.h"
#include "netns/netns.h"

namespace shunt::bench {

class Acceptor {
 public:
  explicit Acceptor(const lab::Netns& pods);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

 private:
  UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace shunt::bench
