// What tests of IPVS on the real kernel share: a network namespace for each, and what others see in
// it.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/subprocess.h"
#include "net/socket_address.h"
#include "netlink/ipvs.h"

namespace shunt::test::ipvs {

inline net::SocketAddress at(const std::string& text) {
  return net::parse_socket_address(text).value();
}
inline net::IpAddress ip(const std::string& text) { return net::parse_ip(text).value(); }

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string diagnostics;
};

inline Ran try_sh(const std::string& script) {
  auto ran = run(
      {.argv = {"sh", "-c", script},
       .max_output = std::size_t{32} << 20,
       .timeout = std::chrono::minutes(5)});
  INFO((ran ? std::string() : ran.error().what));
  REQUIRE(ran);
  return {ran->exit_code, std::move(ran->out), std::move(ran->diagnostics)};
}

inline std::string sh(const std::string& script) {
  Ran ran = try_sh(script);
  INFO(script << "\n" << ran.diagnostics);
  REQUIRE(ran.exit_code == 0);
  return std::move(ran.out);
}

// Moves the test into a network namespace of its own; the sockets it opens and the programs it runs
// follow.
inline void enter_namespace() {
  if (::geteuid() != 0) {
    SKIP("needs root");
  }
  REQUIRE(::unshare(CLONE_NEWNET) == 0);
  sh("ip link set lo up");
}

// In a namespace of its own.
inline std::unique_ptr<netlink::ipvs::Socket> open_ipvs() {
  enter_namespace();
  auto socket = netlink::ipvs::Socket::open();
  if (!socket && socket.error().code == Errc::Unsupported) {
    SKIP("no IPVS here: " << socket.error().what);
  }
  INFO((socket ? std::string() : socket.error().what));
  REQUIRE(socket);
  if (try_sh("command -v ipvsadm").exit_code != 0) {
    SKIP("needs ipvsadm, to see what others see");
  }
  return std::move(*socket);
}

}  // namespace shunt::test::ipvs
