// Host names -> addresses, without holding the caller.
//
// getaddrinfo can neither be given a deadline nor be interrupted, so it runs on a thread of its own
// and the caller waits on a descriptor. Addresses as hosts never come here. The destructor waits
// for a lookup under way: what /etc/resolv.conf allows, 10 s by default.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apiserver/deadline.h"
#include "base/result.h"
#include "base/wake_fd.h"
#include "net/ip_address.h"

namespace shunt::apiserver {

// Thread-safe.
class Resolver {
 public:
  Resolver() = default;
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // In the system's order of preference. Never an empty list.
  Result<std::vector<net::IpAddress>> resolve(const std::string& host, const Deadline& deadline);

 private:
  struct Lookup;
  void work();

  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<std::shared_ptr<Lookup>> waiting_;
  bool ending_ = false;
  std::thread thread_;  // started by the first lookup
};

}  // namespace shunt::apiserver
