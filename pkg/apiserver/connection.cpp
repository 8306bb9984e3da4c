#include "apiserver/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shunt::apiserver {
namespace {

tl::unexpected<Error> socket_failure(std::string_view what, int error) {
  return fail(Errc::Again, std::string(what) + ": " + std::strerror(error), error);
}

socklen_t to_sockaddr(const net::SocketAddress& from, sockaddr_storage& to) {
  to = {};
  if (from.ip.family == net::Family::IPv4) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(net::number(from.port));
    std::memcpy(&address.sin_addr, from.ip.bytes.data(), 4);
    std::memcpy(&to, &address, sizeof address);
    return sizeof address;
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(net::number(from.port));
  std::memcpy(&address.sin6_addr, from.ip.bytes.data(), 16);
  std::memcpy(&to, &address, sizeof address);
  return sizeof address;
}

// A peer that vanished is noticed after 45 s (as kube-proxy does with its HTTP/2 pings), both when
// we wait for it and when it owes us an acknowledgement.
void tune(int fd) {
  const auto set = [fd](int level, int option, int value) {
    (void)::setsockopt(fd, level, option, &value, sizeof value);  // a refusal costs only comfort
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 45'000);
}

Result<UniqueFd> dial_one(const net::SocketAddress& address, const Deadline& deadline) {
  sockaddr_storage storage{};
  const socklen_t size = to_sockaddr(address, storage);
  UniqueFd fd(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const std::string what = "connecting to " + to_string(address);
  if (!fd) {
    return socket_failure(what, errno);
  }
  tune(fd.get());
  // The socket API takes every family through this cast.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), size) == 0) {
    return fd;
  }
  if (errno != EINPROGRESS) {
    return socket_failure(what, errno);
  }
  if (auto ready = wait_until_ready(fd.get(), Readiness::Write, deadline); !ready) {
    return fail(what, ready.error());
  }
  int error = 0;
  socklen_t length = sizeof error;
  (void)::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    return socket_failure(what, error);
  }
  return fd;
}

// OpenSSL's own socket BIO writes with write(2), and a broken connection would then raise SIGPIPE
// in a library that owns no signal.
int bio_descriptor(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto n = ::send(bio_descriptor(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_write(bio);
  }
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto n = ::recv(bio_descriptor(bio), data, static_cast<std::size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(n);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* bio_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

}  // namespace

Result<Connection> Connection::dial(
    std::span<const net::IpAddress> addresses,
    net::Port port,
    const ConnectionLimits& limits,
    int stop_fd) {
  const auto until = Clock::now() + limits.dial;
  Error failure{Errc::Again, 0, "no address to connect to"};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // Each address gets its share of the time that is left, so that a silent one hides no other.
    const auto share = (until - Clock::now()) / static_cast<Clock::rep>(addresses.size() - i);
    auto fd = dial_one({addresses[i], port}, {Clock::now() + share, stop_fd});
    if (fd) {
      return Connection(std::move(*fd));
    }
    if (fd.error().sys_errno == ECANCELED) {
      return tl::unexpected(fd.error());
    }
    if (failure.sys_errno != ECONNREFUSED) {
      failure = fd.error();
    }
  }
  return tl::unexpected(failure);
}

Result<> Connection::start_tls(
    const TlsContext& context, const std::string& name, const Deadline& deadline) {
  auto ssl = context.session(name);
  if (!ssl) {
    return tl::unexpected(ssl.error());
  }
  BIO* bio = BIO_new(bio_method());
  if (bio == nullptr) {
    return fail(Errc::Again, "OpenSSL cannot make a BIO");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in OpenSSL's data slot, no pointer.
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd_.get())));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl->get(), bio, bio);  // owns it now
  ssl_ = std::move(*ssl);
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const int result = SSL_connect(ssl_.get());
    if (result == 1) {
      return {};
    }
    if (auto settled = settle(result, deadline); !settled) {
      if (const long verdict = SSL_get_verify_result(ssl_.get()); verdict != X509_V_OK) {
        return fail(
            Errc::Denied,
            "the server's certificate is refused for " + name + ": " +
                X509_verify_cert_error_string(verdict));
      }
      return fail("TLS handshake", settled.error());
    }
  }
}

Result<> Connection::settle(int result, const Deadline& deadline) {
  const int saved = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return wait_until_ready(fd_.get(), Readiness::Read, deadline);
    case SSL_ERROR_WANT_WRITE:
      return wait_until_ready(fd_.get(), Readiness::Write, deadline);
    case SSL_ERROR_SYSCALL:
      return saved != 0 ? socket_failure("connection lost", saved)
                        : socket_failure("connection lost", ECONNRESET);
    default:
      break;
  }
  // The server went away without TLS's own goodbye: a crash, or somebody cutting an answer short.
  if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ERR_clear_error();
    return socket_failure("connection lost", ECONNRESET);
  }
  return fail(Errc::Again, "TLS: " + openssl_error());
}

Result<std::size_t> Connection::read(std::span<char> into, const Deadline& deadline) {
  for (;;) {
    if (ssl_) {
      ERR_clear_error();
      errno = 0;
      std::size_t n = 0;
      const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &n);
      if (result == 1) {
        return n;
      }
      if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN) {
        return std::size_t{0};
      }
      if (auto settled = settle(result, deadline); !settled) {
        return tl::unexpected(settled.error());
      }
      continue;
    }
    const ssize_t n = ::recv(fd_.get(), into.data(), into.size(), 0);
    if (n >= 0) {
      return static_cast<std::size_t>(n);
    }
    if (errno != EAGAIN && errno != EINTR) {
      return socket_failure("connection lost", errno);
    }
    if (auto ready = wait_until_ready(fd_.get(), Readiness::Read, deadline); !ready) {
      return tl::unexpected(ready.error());
    }
  }
}

Result<> Connection::write(std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    if (ssl_) {
      ERR_clear_error();
      errno = 0;
      std::size_t n = 0;
      const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n);
      if (result == 1) {
        bytes.remove_prefix(n);
      } else if (auto settled = settle(result, deadline); !settled) {
        return settled;
      }
      continue;
    }
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EAGAIN && errno != EINTR) {
      return socket_failure("connection lost", errno);
    } else if (auto ready = wait_until_ready(fd_.get(), Readiness::Write, deadline); !ready) {
      return ready;
    }
  }
  return {};
}

bool Connection::stale() const {
  pollfd fd{fd_.get(), POLLIN, 0};
  return ::poll(&fd, 1, 0) != 0;
}

}  // namespace shunt::apiserver
