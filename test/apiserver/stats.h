// What the server was asked and how it answered, for tests that check a client's manners. Any
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

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

class Stats {
 public:
  void answered(RequestRecord record);
  void watch_opened(const std::string& resource);
  void watch_closed(const std::string& resource);

  Json summary() const;   // counts by verb, resource and code; open watches
  Json requests() const;  // the last thousand, oldest first
  void reset();           // counts and requests; open watches stay

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, int>, std::uint64_t> counts_;
  std::map<std::string, int> open_watches_;
  std::deque<RequestRecord> recent_;
};

}  // namespace shunt::test_api
