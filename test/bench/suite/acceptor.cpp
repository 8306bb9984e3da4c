#include "bench/suite/acceptor.h"

#include <poll.h>
#include <sys/socket.h>

#include "net/socket_address.h"
#include "netns/sockets.h"

namespace shunt::bench {

Acceptor::Acceptor(const lab::Netns& pods) {
  listener_ = pods.run([] {
    return lab::open_listener(
        net::Protocol::Tcp, net::parse_socket_address("0.0.0.0:8080").value());
  });
  thread_ = std::thread([this] {
    while (!stop_) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 50) > 0) {
        const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      }
    }
  });
}

Acceptor::~Acceptor() {
  stop_ = true;
  thread_.join();
}

}  // namespace shunt::bench
