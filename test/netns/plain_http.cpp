#include "netns/plain_http.h"

#include <sys/socket.h>

#include <array>

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
  return {std::stoi(answer.substr(9, 3)), answer.substr(head + 4)};
}

}  // namespace shunt::lab
