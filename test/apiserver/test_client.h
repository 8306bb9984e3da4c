// What the tests of this folder call the server with: one-shot requests, and a watch read line by
// line. Plain sockets where a library would hide how a connection ended.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "test/apiserver/json.h"
#include "test/apiserver/server.h"

namespace shunt::test_api {

using Headers = std::map<std::string, std::string>;

struct Reply {
  int code = 0;  // 0: no answer at all
  Headers headers;
  std::string body;
  Json json() const { return Json::parse(body, nullptr, false); }
};

// A directory of its own, gone at the end.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  std::string path() const { return path_; }

 private:
  std::string path_;
};

// A server on free loopback ports, plain and TLS, that can be stopped and started again.
class TestServer {
 public:
  // `adjust` sets what a test needs to be different.
  explicit TestServer(const std::function<void(ServerOptions&)>& adjust = {});
  Server& operator*() { return *server_; }
  Server* operator->() { return server_.get(); }
  std::string dir() const { return dir_.path(); }
  std::uint16_t plain_port() const;
  std::uint16_t tls_port() const;
  void restart();  // the same ports

  Reply call(
      const std::string& method,
      const std::string& target,
      const std::string& body = "",
      const Headers& headers = {});
  Reply get(const std::string& target) { return call("GET", target); }
  void apply(const std::string& manifests, const std::string& query = "");
  Json faults(const std::string& list);

  // Over TLS. `certificate`: stem of PEM files, "" for none.
  Reply tls_get(
      const std::string& target, const std::string& certificate, const Headers& headers = {});

 private:
  void start();
  TempDir dir_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

// A watch (or any GET) over the plain port.
class LineClient {
 public:
  LineClient(TestServer& server, const std::string& target, const std::string& accept = "");

  enum class State { Open, Ended, Cut };
  // The next line of the body, or nothing when the stream is over or `patience` is.
  std::optional<std::string> line(std::chrono::milliseconds patience = std::chrono::seconds(5));
  // The same as JSON; discarded when there is none or it is broken.
  Json event(std::chrono::milliseconds patience = std::chrono::seconds(5));
  // The next frame of a watch in protobuf, without its length.
  std::optional<std::string> frame(std::chrono::milliseconds patience = std::chrono::seconds(5));
  // Reads to the end.
  State finish(std::chrono::milliseconds patience = std::chrono::seconds(5));
  const std::string& head() const { return head_; }
  const std::string& rest() const { return body_; }  // what is no whole line yet

 private:
  // The bytes in front, once `measure` knows how many; and not the `separator` behind them.
  std::optional<std::string> take(
      const std::function<std::optional<std::size_t>()>& measure,
      std::size_t separator,
      std::chrono::milliseconds patience);
  bool fill(std::chrono::steady_clock::time_point deadline);
  void decode();

  UniqueFd fd_;
  std::string raw_;
  std::string head_;
  std::string body_;
  State state_ = State::Open;
};

// "ADDED shop/web": what most tests look at.
std::string summary(const Json& event);

std::string recording(const std::string& name);  // the bytes of test/recordings/NAME

// A Service with one port, as YAML.
std::string service(const std::string& name, const std::string& more_metadata = "");

}  // namespace shunt::test_api
