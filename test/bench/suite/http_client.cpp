#include "bench/suite/http_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

#include "netns/sockets.h"

namespace shunt::bench {
namespace {

// Headers as the server writes them: "Name: value", one spelling.
std::string header(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) {
    return {};
  }
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

}  // namespace

HttpClient::HttpClient(const lab::Netns& where, const net::SocketAddress& server)
    : where_(where), server_(server) {}

std::string HttpClient::read_some() {
  std::array<char, 65536> buffer{};
  const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (n <= 0) {
    throw std::runtime_error("the API server hung up");
  }
  return {buffer.data(), static_cast<std::size_t>(n)};
}

std::string HttpClient::read_body(std::string& buffer, const std::string& head) {
  const auto take = [&](std::size_t count) {
    while (buffer.size() < count) {
      buffer += read_some();
    }
    std::string taken = buffer.substr(0, count);
    buffer.erase(0, count);
    return taken;
  };
  const std::string length = header(head, "Content-Length");
  if (!length.empty()) {
    return take(std::stoul(length));
  }
  std::string body;
  for (;;) {
    while (buffer.find("\r\n") == std::string::npos) {
      buffer += read_some();
    }
    const std::size_t size = std::stoul(take(buffer.find("\r\n") + 2), nullptr, 16);
    body += take(size);
    (void)take(2);
    if (size == 0) {
      return body;
    }
  }
}

HttpReply HttpClient::ask(
    const std::string& method, const std::string& path, const std::string& body) {
  if (!fd_) {
    fd_ = where_.run([&] {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const lab::RawAddress raw = lab::to_raw(server_);
      const int on = 1;
      (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // a nicety
      if (::connect(fd.get(), raw.get(), raw.length) != 0) {
        throw std::runtime_error("no API server at " + net::to_string(server_));
      }
      return fd;
    });
  }
  const std::string text =
      method + " " + path + " HTTP/1.1\r\nHost: bench\r\nContent-Type: " +
      (method == "PATCH" ? "application/merge-patch+json" : "application/json") +
      "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  HttpReply reply;
  reply.begun = now_ns();
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0) {
      throw std::runtime_error("the API server hung up");
    }
    sent += static_cast<std::size_t>(n);
  }
  std::string buffer;
  while (buffer.find("\r\n\r\n") == std::string::npos) {
    buffer += read_some();
  }
  const std::size_t end = buffer.find("\r\n\r\n");
  const std::string head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  reply.body = read_body(buffer, head);
  reply.answered = now_ns();
  reply.status = std::stoi(head.substr(9, 3));
  const std::string sent = header(head, "X-Sent-Ns");
  reply.sent = sent.empty() ? reply.begun : std::stoll(sent);
  if (header(head, "Connection") == "close") {
    fd_.reset();
  }
  return reply;
}

HttpReply HttpClient::request(
    const std::string& method, const std::string& path, const std::string& body) {
  HttpReply reply = ask(method, path, body);
  if (reply.status < 200 || reply.status > 299) {
    throw std::runtime_error(
        method + " " + path + ": " + std::to_string(reply.status) + " " + reply.body);
  }
  return reply;
}

}  // namespace shunt::bench
