#include "bench/floor/list_floor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/handle.h"
#include "base/unique_fd.h"

namespace shunt::bench {
namespace {

using SslContext = Handle<SSL_CTX, SSL_CTX_free>;
using Ssl = Handle<SSL, SSL_free>;

constexpr std::array<const char*, 2> kLists{
    "/api/v1/services?resourceVersion=0",
    "/apis/discovery.k8s.io/v1/endpointslices?resourceVersion=0"};

SslContext make_context(const std::string& pki) {
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (!context ||
      SSL_CTX_load_verify_locations(context.get(), (pki + "/ca.crt").c_str(), nullptr) != 1 ||
      SSL_CTX_use_certificate_chain_file(context.get(), (pki + "/client.crt").c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), (pki + "/client.key").c_str(), SSL_FILETYPE_PEM) !=
          1) {
    throw std::runtime_error("cannot use the certificates in " + pki);
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // Servers that close without saying so are met often; the chunked body tells its end itself.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  return context;
}

UniqueFd connect_to(const std::string& host, std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect to " + host);
  }
  return fd;
}

std::uint64_t read_one(
    SSL_CTX* context,
    const std::string& host,
    std::uint16_t port,
    const std::string& target,
    const std::string& accept) {
  const UniqueFd fd = connect_to(host, port);
  const Ssl ssl(SSL_new(context));
  SSL_set_fd(ssl.get(), fd.get());
  const std::string request = "GET " + target + " HTTP/1.1\r\nHost: " + host +
                              "\r\nUser-Agent: bench_floor\r\nAccept: " + accept +
                              "\r\nConnection: close\r\n\r\n";
  if (SSL_connect(ssl.get()) != 1 ||
      SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())) <= 0) {
    throw std::runtime_error("no TLS with " + host);
  }
  std::vector<char> buffer(std::size_t{64} * 1024);
  std::uint64_t bytes = 0;
  std::string head;
  for (int n = 0; (n = SSL_read(ssl.get(), buffer.data(), static_cast<int>(buffer.size()))) > 0;) {
    if (head.size() < 12) {
      head.append(buffer.data(), std::min<std::size_t>(static_cast<std::size_t>(n), 12));
    }
    bytes += static_cast<std::uint64_t>(n);
  }
  if (!head.starts_with("HTTP/1.1 200")) {
    throw std::runtime_error(target + ": " + head);
  }
  return bytes;
}

}  // namespace

ListFloor read_lists(
    const std::string& host,
    std::uint16_t port,
    const std::string& pki,
    const std::string& accept) {
  const auto begin = std::chrono::steady_clock::now();
  const SslContext context = make_context(pki);
  std::array<std::uint64_t, kLists.size()> bytes{};
  std::array<std::exception_ptr, kLists.size()> thrown{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kLists.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        bytes[i] = read_one(context.get(), host, port, kLists[i], accept);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& error : thrown) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
      bytes[0] + bytes[1]};
}

}  // namespace shunt::bench
