// What the server was asked and how it answered, for tests that check a client's manners. Any
// thread.
#pragma once

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
};

class Stats {
 public:
  void answered(RequestRecord record);
  std::uint64_t watch_opened(OpenWatch watch);  // its id
  void watch_told(std::uint64_t id, std::uint64_t version);
  void watch_closed(std::uint64_t id);

  Json summary() const;  // counts by verb, resource and code; open watches
  std::vector<OpenWatch> watches() const;
  Json requests() const;  // the last thousand, oldest first
  void reset();           // counts and requests; open watches stay

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, int>, std::uint64_t> counts_;
  std::map<std::uint64_t, OpenWatch> watches_;
  std::uint64_t last_watch_ = 0;
  std::deque<RequestRecord> recent_;
};

}  // namespace shunt::test_api
