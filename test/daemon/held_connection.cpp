#include "daemon/held_connection.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <stdexcept>

#include "netns/sockets.h"

namespace shunt::test {
namespace {

constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};

UniqueFd open_blocking(net::Family family) {
  UniqueFd fd(::socket(lab::domain_of(family), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger reset{.l_onoff = 1, .l_linger = 0};
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0) {
    lab::raise_errno("socket");
  }
  return fd;
}

// Until `text` holds as many bytes, or ends with this one.
bool receive(int fd, std::string& text, std::size_t size, char last) {
  std::array<char, 512> buffer{};
  while (text.size() < size && (text.empty() || text.back() != last)) {
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) {
      return false;
    }
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

HeldConnection::HeldConnection(
    const lab::Netns& where,
    const std::optional<net::SocketAddress>& from,
    const net::SocketAddress& to) {
  where.run([&] {
    fd_ = open_blocking(to.ip.family);
    if (from) {
      lab::bind_to(fd_.get(), *from);
    }
    const lab::RawAddress raw = lab::to_raw(to);
    if (::connect(fd_.get(), raw.get(), raw.length) != 0) {
      lab::raise_errno("cannot connect to " + net::to_string(to));
    }
  });
  name_ = net::to_string(lab::local_address(fd_.get())) + " to " + net::to_string(to);
  if (!receive(fd_.get(), greeting_, 512, '\n')) {
    throw std::runtime_error("no greeting: " + name_);
  }
}

bool HeldConnection::exchanges() {
  const std::string said = "message " + std::to_string(++sent_) + ";";
  std::string heard;
  return ::send(fd_.get(), said.data(), said.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(said.size()) &&
         receive(fd_.get(), heard, said.size(), ';') && heard == said;
}

}  // namespace shunt::test
