// A TCP connection to an echo server that stays open while a test does something to the daemon.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "net/socket_address.h"
#include "netns/netns.h"

namespace shunt::test {

class HeldConnection {
 public:
  // Throws when nobody greets. `from` without a port chooses one; a connection that is
  // established by then.
  HeldConnection(
      const lab::Netns& where,
      const std::optional<net::SocketAddress>& from,
      const net::SocketAddress& to);
  HeldConnection(HeldConnection&&) = default;
  HeldConnection& operator=(HeldConnection&&) = default;
  HeldConnection(const HeldConnection&) = delete;
  HeldConnection& operator=(const HeldConnection&) = delete;
  // Closes with a reset, so that nothing on the way remembers it for minutes.
  ~HeldConnection() = default;

  // Whether some bytes go there and come back.
  bool exchanges();
  // The server's greeting: its name, its own address, ours as it sees it.
  const std::string& greeting() const { return greeting_; }
  std::string from_port() const {
    return name_.substr(name_.find(':') + 1, name_.find(' ') - name_.find(':') - 1);
  }
  const std::string& name() const { return name_; }  // "198.51.100.7:4711 to 10.112.0.10:80"

 private:
  UniqueFd fd_;
  std::string name_;
  std::string greeting_;
  int sent_ = 0;
};

inline void check_alive(std::vector<HeldConnection>& connections) {
  for (HeldConnection& connection : connections) {
    INFO(connection.name());
    CHECK(connection.exchanges());
  }
}

}  // namespace shunt::test
