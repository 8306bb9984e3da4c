#include "test/apiserver/stream.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <limits>

namespace shunt::test_api {
namespace {

using X509Ptr = Handle<X509, X509_free>;

std::vector<std::string> name_entries(const X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int at = X509_NAME_get_index_by_NID(name, nid, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(name, nid, at)) {
    const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    out.emplace_back(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
        static_cast<std::size_t>(ASN1_STRING_length(text)));
  }
  return out;
}

int clamp_size(std::size_t size) {
  return static_cast<int>(
      std::min(size, static_cast<std::size_t>(std::numeric_limits<int>::max())));
}

}  // namespace

bool Stream::handshake(SSL_CTX* context) {
  ssl_.reset(SSL_new(context));
  if (!ssl_ || SSL_set_fd(ssl_.get(), fd_.get()) != 1) {
    return false;
  }
  ERR_clear_error();
  return SSL_accept(ssl_.get()) == 1;
}

std::optional<ClientCertificate> Stream::client_certificate() const {
  const X509Ptr certificate(ssl_ ? SSL_get1_peer_certificate(ssl_.get()) : nullptr);
  if (!certificate) {
    return std::nullopt;
  }
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  ClientCertificate out;
  const auto names = name_entries(subject, NID_commonName);
  out.common_name = names.empty() ? "" : names.front();
  out.organizations = name_entries(subject, NID_organizationName);
  out.trusted = SSL_get_verify_result(ssl_.get()) == X509_V_OK;
  return out;
}

std::size_t Stream::read(char* data, std::size_t size) {
  peer_talked_ = false;
  if (ssl_) {
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), data, clamp_size(size));
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  ssize_t got = 0;
  do {
    got = ::recv(fd_.get(), data, size, 0);
  } while (got < 0 && errno == EINTR);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool Stream::write(std::string_view data) {
  while (!data.empty()) {
    ssize_t sent = 0;
    if (ssl_) {
      ERR_clear_error();
      sent = SSL_write(ssl_.get(), data.data(), clamp_size(data.size()));
    } else {
      sent = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) {
        continue;
      }
    }
    if (sent <= 0) {
      return false;
    }
    data.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Stream::Wait Stream::wait(int wake_fd, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const auto readable = static_cast<short>(peer_talked_ ? POLLRDHUP : POLLIN | POLLRDHUP);
    std::array<pollfd, 2> fds{pollfd{wake_fd, POLLIN, 0}, pollfd{fd_.get(), readable, 0}};
    int left = -1;
    if (timeout_ms >= 0) {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      left = static_cast<int>(std::max<std::int64_t>(rest.count(), 0));
    }
    const int ready = ::poll(fds.data(), fds.size(), left);
    if (ready < 0 && errno != EINTR) {
      return Wait::Gone;
    }
    if (ready == 0) {
      return Wait::TimedOut;
    }
    if (ready > 0 && fds[1].revents != 0 && peer_gone()) {
      return Wait::Gone;
    }
    if (ready > 0 && fds[0].revents != 0) {
      return Wait::Woken;
    }
  }
}

// The socket is readable. A TLS client that leaves sends a close_notify record first, which only
// OpenSSL can tell from a pipelined request; hence the peek, without blocking on half a record.
bool Stream::peer_gone() {
  char byte = 0;
  if (!ssl_) {
    const ssize_t got = ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    peer_talked_ = got > 0;
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  }
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  (void)::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK);
  ERR_clear_error();
  const int got = SSL_peek(ssl_.get(), &byte, 1);
  const int error = SSL_get_error(ssl_.get(), got);
  (void)::fcntl(fd_.get(), F_SETFL, flags);
  peer_talked_ = got > 0;
  return got <= 0 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
}

void Stream::close(bool reset) {
  const std::lock_guard lock(close_mutex_);
  if (reset && fd_) {
    const linger now{1, 0};
    (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);  // best effort
  }
  fd_.reset();
}

void Stream::interrupt() {
  const std::lock_guard lock(close_mutex_);
  if (fd_) {
    (void)::shutdown(fd_.get(), SHUT_RDWR);  // the peer may have left already
  }
}

}  // namespace shunt::test_api
