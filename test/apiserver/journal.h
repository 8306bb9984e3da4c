// The state of the server over restarts: a file of JSON lines, one a change. A killed server loses
// nothing that it had answered for.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "test/apiserver/store.h"

namespace shunt::test_api {

class Journal {
 public:
  Journal() = default;  // keeps nothing

  // Replays the file into `store`, then keeps it open for more.
  Result<> open(const std::string& path, Store& store);
  void write(std::size_t table, const std::string& key, const Change& change);
  void write_version(std::uint64_t version);

 private:
  void append(const std::string& line);
  UniqueFd fd_;
};

}  // namespace shunt::test_api
