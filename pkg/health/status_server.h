// Answers each connection to a Unix socket with one line of JSON and closes it: the state of the
// daemon for tests and for people on the node. One thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/wake_fd.h"

namespace shunt::health {

class StatusServer {
 public:
  // `answer` is called on the server's thread, once a connection; it may wait. The socket is mode
  // 0600.
  static Result<std::unique_ptr<StatusServer>> start(
      const std::string& path, std::function<std::string()> answer);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  StatusServer(std::string path, UniqueFd listener, std::function<std::string()> answer);
  void serve();

  std::string path_;
  UniqueFd listener_;
  std::function<std::string()> answer_;
  WakeFd stop_;
  std::thread thread_;
};

}  // namespace shunt::health
