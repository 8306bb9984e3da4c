#include "netns/plain_http.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "netns/sockets.h"

namespace shunt::lab {
namespace {

std::string exchange(const net::SocketAddress& server, const std::string& request) {
  const RawAddress raw = to_raw(server);
  const int family = server.ip.family == net::Family::IPv4 ? AF_INET : AF_INET6;
  const UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), raw.get(), raw.length) != 0) {
    return {};
  }
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t n = ::send(fd.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n < 0) {
      return {};
    }
    sent += static_cast<std::size_t>(n);
  }
  std::string answer;
  std::array<char, 65536> buffer{};
  for (ssize_t n = 0; (n = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;) {
    answer.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return answer;
}

// The body without the sizes in between, as far as it goes.
std::string joined_chunks(const std::string& body) {
  std::string joined;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t line_end = body.find("\r\n", at);
    const std::size_t size = std::strtoul(body.c_str() + at, nullptr, 16);
    if (line_end == std::string::npos || size == 0) {
      break;
    }
    joined += body.substr(line_end + 2, size);
    at = line_end + 2 + size + 2;
  }
  return joined;
}

bool is_chunked(std::string head) {
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
  return head.find("transfer-encoding: chunked") != std::string::npos;
}

}  // namespace

HttpAnswer plain_http(
    const Netns& where,
    const net::SocketAddress& server,
    const std::string& method,
    const std::string& path,
    const std::string& body) {
  const std::string request =
      method + " " + path + " HTTP/1.1\r\nHost: lab\r\nConnection: close\r\nContent-Type: " +
      (method == "PATCH" ? "application/merge-patch+json" : "application/json") +
      "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::string answer = where.run([&] { return exchange(server, request); });
  const std::size_t head = answer.find("\r\n\r\n");
  if (answer.size() < 12 || head == std::string::npos) {
    return {};
  }
  std::string content = answer.substr(head + 4);
  return {
      std::stoi(answer.substr(9, 3)),
      is_chunked(answer.substr(0, head)) ? joined_chunks(content) : content};
}

}  // namespace shunt::lab
