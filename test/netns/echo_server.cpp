#include "netns/echo_server.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <vector>

#include "netns/sockets.h"

namespace shunt::lab {
namespace {

pollfd readable(int fd) { return {.fd = fd, .events = POLLIN, .revents = 0}; }

std::string greeting(
    const std::string& name, const net::SocketAddress& own, const net::SocketAddress& peer) {
  return name + " " + net::to_string(own) + " " + net::to_string(peer) + "\n";
}

// False when the peer is done. A peer that does not read its echo loses the rest of it.
bool echo(int fd) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (n <= 0) {
    return n < 0 && errno == EAGAIN;
  }
  return ::send(fd, buffer.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) >= 0;
}

}  // namespace

EchoServer::EchoServer(
    const Netns& where, net::Protocol protocol, const net::SocketAddress& address, std::string name)
    : name_(std::move(name)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  listener_ = where.run([&] { return open_listener(protocol, address); });
  thread_ =
      std::thread([this, protocol] { protocol == net::Protocol::Udp ? serve_udp() : serve_tcp(); });
}

EchoServer::~EchoServer() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void EchoServer::serve_tcp() {
  std::vector<UniqueFd> clients;
  while (true) {
    std::vector<pollfd> polled{readable(stop_.get()), readable(listener_.get())};
    for (const UniqueFd& client : clients) {
      polled.push_back(readable(client.get()));
    }
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) {
      return;
    }
    for (std::size_t i = polled.size(); i-- > 2;) {
      if (polled[i].revents != 0 && !echo(polled[i].fd)) {
        clients[i - 2] = std::move(clients.back());
        clients.pop_back();
      }
    }
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client) {
      const std::string hello =
          greeting(name_, local_address(client.get()), peer_address(client.get()));
      ::send(client.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
      clients.push_back(std::move(client));
    }
  }
}

void EchoServer::serve_udp() {
  const net::SocketAddress own = local_address(listener_.get());
  while (true) {
    std::array<pollfd, 2> polled{readable(stop_.get()), readable(listener_.get())};
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) {
      return;
    }
    std::array<char, 4096> buffer{};
    RawAddress peer;
    peer.length = sizeof peer.storage;
    const ssize_t n =
        ::recvfrom(listener_.get(), buffer.data(), buffer.size(), 0, peer.get(), &peer.length);
    if (n >= 0) {
      const std::string answer = greeting(name_, own, from_raw(peer)) +
                                 std::string(buffer.data(), static_cast<std::size_t>(n));
      ::sendto(
          listener_.get(), answer.data(), answer.size(), MSG_NOSIGNAL, peer.get(), peer.length);
    }
  }
}

}  // namespace shunt::lab
