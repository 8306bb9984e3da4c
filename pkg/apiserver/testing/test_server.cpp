#include "apiserver/testing/test_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <stdexcept>

namespace shunt::apiserver::testing {
namespace {

using Bio = Handle<BIO, BIO_free>;

void require(bool good, const char* what) {
  if (!good) {
    throw std::runtime_error(what);
  }
}

Handle<X509, X509_free> certificate_of(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Handle<X509, X509_free>(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

Handle<SSL_CTX, SSL_CTX_free> server_context(const TestServer::Options& options) {
  Handle<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_server_method()));
  const auto certificate = certificate_of(options.certificate->certificate);
  const std::string& pem = options.certificate->key;
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Handle<EVP_PKEY, EVP_PKEY_free> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  require(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1, "certificate");
  require(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "key");
  if (!options.client_ca.empty()) {
    const auto ca = certificate_of(options.client_ca);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

}  // namespace

std::optional<std::string> Peer::request() {
  std::string text;
  const auto take_byte = [&] {
    char c = 0;
    const auto n = ssl_ != nullptr ? SSL_read(ssl_, &c, 1) : ::recv(fd_, &c, 1, 0);
    text += c;
    return n > 0;
  };
  while (!text.ends_with("\r\n\r\n")) {
    if (!take_byte()) {
      return std::nullopt;
    }
  }
  const std::string name = "Content-Length: ";
  const auto length = text.find(name);
  std::size_t left =
      length == std::string::npos ? 0 : std::stoul(text.substr(length + name.size()));
  for (; left > 0; --left) {
    if (!take_byte()) {
      return std::nullopt;
    }
  }
  return text;
}

void Peer::send(std::string_view bytes) {
  if (ssl_ != nullptr) {
    (void)SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));  // the client may be gone
  } else {
    (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
}

void Peer::answer(int status, std::string_view body, std::string_view headers) {
  send(
      "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n" + std::string(headers) + "\r\n" + std::string(body));
}

void Peer::chunk(std::string_view bytes) {
  std::array<char, 20> size{};
  (void)std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  send(size.data() + std::string(bytes) + "\r\n");
}

std::string Peer::client_name() const {
  const Handle<X509, X509_free> certificate(SSL_get1_peer_certificate(ssl_));
  if (!certificate) {
    return "";
  }
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(
      X509_get_subject_name(certificate.get()), NID_commonName, name.data(), name.size());
  return name.data();
}

void Peer::goodbye() {
  (void)SSL_shutdown(ssl_);  // one-sided is enough
}

void Peer::hang() {
  char c = 0;
  while (::recv(fd_, &c, 1, 0) > 0) {
  }
}

TestServer::TestServer(Options options, Handler handler)
    : options_(std::move(options)), handler_(std::move(handler)) {
  // OpenSSL's socket BIO raises it when a test's client leaves early.
  (void)std::signal(SIGPIPE, SIG_IGN);
  if (options_.certificate) {
    context_ = server_context(options_);
  }
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (options_.ipv6) {
    auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_loopback;
    size = sizeof *address;
  } else {
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size = sizeof *address;
  }
  listener_.reset(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  require(::bind(listener_.get(), address, size) == 0, "bind");
  require(::listen(listener_.get(), 16) == 0, "listen");
  require(::getsockname(listener_.get(), address, &size) == 0, "getsockname");
  // Both families keep the port in the same place.
  port_ = ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

TestServer::~TestServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const UniqueFd& socket : sockets_) {
      ::shutdown(socket.get(), SHUT_RDWR);
    }
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

std::string TestServer::url() const {
  return std::string(options_.certificate ? "https://" : "http://") +
         (options_.ipv6 ? "[::1]:" : "127.0.0.1:") + std::to_string(port_);
}

void TestServer::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      return;
    }
    ++connections_;
    const std::lock_guard lock(mutex_);
    sockets_.emplace_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void TestServer::serve(int fd) {
  Handle<SSL, SSL_free> ssl;
  if (context_) {
    ssl.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl.get(), fd);
  }
  if (!ssl || SSL_accept(ssl.get()) == 1) {
    Peer peer(fd, ssl.get());
    handler_(peer);
  }
  // The descriptor itself is closed by the destructor, so that its number is not used again.
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace shunt::apiserver::testing
