// What the server was asked and how it answered, for tests that check a client's manners. Any
// thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "test/apiserver/json.h"

namespace shunt::test_api {

struct RequestRecord {
  std::string verb;
  std::string resource;
  std::string target;  // path and query, as sent
  std::string user;
  std::string user_agent;
  std::string accept;
  int code = 0;
};

// A watch that is open.
struct OpenWatch {
  std::uint64_t id = 0;  // never used twice, later ones are larger
  std::string resource;
  std::size_t table = 0;
  std::string user_agent;
  bool told = false;          // the state to start from has been sent
  std::uint64_t version = 0;  // every change of its resource up to here has been sent
  std::int64_t sent_ns = 0;   // CLOCK_MONOTONIC when the last of it was handed to the socket
};

class Stats {
 public:
  void answered(RequestRecord record);
  std::uint64_t watch_opened(OpenWatch watch);  // its id
  void watch_told(std::uint64_t id, std::uint64_t version, std::int64_t sent_ns);
  void watch_closed(std::uint64_t id);

  // Waits until every watch of a table that has its initial state has been sent `version`.
  struct Told {
    std::size_t watches = 0;   // 0: there is none
    std::int64_t sent_ns = 0;  // the latest of them, also when patience ended first
  };
  Told wait_told(std::size_t table, std::uint64_t version, std::chrono::milliseconds patience);

  Json summary() const;  // counts by verb, resource and code; open watches
  std::vector<OpenWatch> watches() const;
  Json requests() const;  // the last thousand, oldest first
  void reset();           // counts and requests; open watches stay

 private:
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable told_;
  std::map<std::tuple<std::string, std::string, int>, std::uint64_t> counts_;
  std::map<std::uint64_t, OpenWatch> watches_;
  std::uint64_t last_watch_ = 0;
  std::deque<RequestRecord> recent_;
};

}  // namespace shunt::test_api
