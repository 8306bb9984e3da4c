#include "http/server.h"

#include <sys/resource.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <list>
#include <thread>

#include "http/testing/client.h"

namespace shunt::http {
namespace {

using testing::ask;
using testing::free_port;
using testing::get;
using testing::on_loopback;
using testing::Peer;

struct World {
  explicit World(Limits limits = {}) : server(*Server::start("http-test", limits)) {}

  // Tells path and query.
  Server::ListenerId listen(net::Port port, bool any_method = false) {
    return *server->listen(
        {on_loopback(port)},
        {[](const Request& request) {
           return Response{200, "text/plain", request.path + "|" + request.query};
         },
         any_method});
  }

  std::unique_ptr<Server> server;
};

template <typename Condition>
bool soon(const Condition& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(Millis(10));
  }
  return false;
}

TEST_CASE("a request is answered and the connection ends") {
  World world;
  const net::Port port = free_port();
  world.listen(port);
  const auto reply = get(on_loopback(port), "/a?b=c");
  REQUIRE(reply);
  CHECK(reply->status == 200);
  CHECK(reply->body == "/a|b=c");
  CHECK(reply->header("Content-Type") == "text/plain");
  CHECK(reply->header("Content-Length") == "6");
  CHECK(reply->header("Connection") == "close");
}

TEST_CASE("HEAD has the length and no body; other methods only where they are wanted") {
  World world;
  const net::Port reads = free_port();
  world.listen(reads);
  const auto head = ask(on_loopback(reads), "HEAD /a HTTP/1.1\r\n\r\n");
  REQUIRE(head);
  CHECK(head->header("Content-Length") == "3");
  CHECK(head->body.empty());
  const auto put = ask(on_loopback(reads), "PUT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\n7");
  REQUIRE(put);
  CHECK(put->status == 405);
  CHECK(put->header("Allow") == "GET, HEAD");
  const net::Port anything = free_port();
  world.listen(anything, true);
  const auto other = ask(on_loopback(anything), "BREW /pot HTTP/1.1\r\n\r\n");
  REQUIRE(other);
  CHECK(other->body == "/pot|");
}

TEST_CASE("what is no request is told so, and what follows a request is not served") {
  World world;
  const net::Port port = free_port();
  world.listen(port);
  CHECK(ask(on_loopback(port), "hello\r\n\r\n")->status == 400);
  const auto first = ask(on_loopback(port), "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
  REQUIRE(first);
  CHECK(first->body == "/a|");
}

TEST_CASE("a handler that throws costs one answer") {
  World world;
  const net::Port port = free_port();
  (void)*world.server->listen({on_loopback(port)}, {[](const Request& request) -> Response {
                                if (request.path == "/bad") {
                                  throw std::runtime_error("no");
                                }
                                return {};
                              }});
  CHECK(get(on_loopback(port), "/bad")->status == 500);
  CHECK(get(on_loopback(port), "/good")->status == 200);
}

TEST_CASE("a port is free as soon as its listener is closed") {
  World world;
  const net::Port port = free_port();
  const auto id = world.listen(port);
  const auto again = world.server->listen({on_loopback(port)}, {});
  REQUIRE(!again);
  CHECK(again.error().code == Errc::Exists);
  auto open = id;
  for (int i = 0; i < 20; ++i) {
    world.server->close(open);
    CHECK(!get(on_loopback(port), "/"));
    open = world.listen(port);
    CHECK(get(on_loopback(port), "/"));
  }
  world.server->close(12345);  // nobody's
}

TEST_CASE("a peer that says nothing is dropped when its time is over, and holds nobody up") {
  World world({.patience = Millis(200)});
  const net::Port port = free_port();
  world.listen(port);
  Peer silent(on_loopback(port));
  Peer slow(on_loopback(port));
  REQUIRE(slow.say("GET / HT"));
  CHECK(get(on_loopback(port), "/"));
  CHECK(silent.hear() == "");
  CHECK(slow.hear().value_or("").empty());  // ended or reset, without an answer
}

TEST_CASE("of too many connections the longest waiting goes first") {
  World world({.connections = 8});
  const net::Port port = free_port();
  world.listen(port);
  std::list<Peer> silent;
  for (int i = 0; i < 20; ++i) {
    silent.emplace_back(on_loopback(port));
    REQUIRE(silent.back().connected());
  }
  CHECK(silent.front().hear().value_or("").empty());
  CHECK(get(on_loopback(port), "/"));
  REQUIRE(silent.back().say("GET /last HTTP/1.1\r\n\r\n"));
  CHECK(silent.back().hear().value_or("").ends_with("/last|"));
}

TEST_CASE("a peer that does not read a big answer holds nobody up, and is dropped for others") {
  World world({.unsent_bytes = std::size_t{16} << 20});
  const net::Port port = free_port();
  const std::string big(std::size_t{12} << 20, 'x');
  (void)*world.server->listen({on_loopback(port)}, {[&](const Request&) {
                                return Response{200, "text/plain", big};
                              }});
  Peer first(on_loopback(port));
  REQUIRE(first.say("GET / HTTP/1.1\r\n\r\n"));
  Peer second(on_loopback(port));
  REQUIRE(second.say("GET / HTTP/1.1\r\n\r\n"));
  const auto third = get(on_loopback(port), "/");
  REQUIRE(third);
  CHECK(third->body.size() == big.size());
  CHECK(first.hear().value_or("").size() < big.size());
}

TEST_CASE("a port that is taken is tried again, and the first failure is told") {
  World world({.bind_again = Millis(50)});
  const net::Port port = free_port();
  auto taken = listen_on({on_loopback(port)});
  REQUIRE(taken);
  int told = 0;
  const auto id = world.server->keep_listening(
      {on_loopback(port)}, {[](const Request&) { return Response{}; }}, [&](const Error& error) {
        CHECK(error.code == Errc::Exists);
        ++told;
      });
  CHECK(told == 1);
  CHECK(!world.server->listening(id));
  std::this_thread::sleep_for(Millis(120));
  taken->reset();
  CHECK(soon([&] { return world.server->listening(id); }));
  CHECK(get(on_loopback(port), "/"));
  CHECK(told == 1);
}

TEST_CASE("a listener that was closed is not tried again") {
  World world({.bind_again = Millis(20)});
  const net::Port port = free_port();
  auto taken = listen_on({on_loopback(port)});
  const auto id = world.server->keep_listening({on_loopback(port)}, {});
  world.server->close(id);
  taken->reset();
  std::this_thread::sleep_for(Millis(100));
  CHECK(!get(on_loopback(port), "/"));
}

TEST_CASE("an unspecified address means both families where that is asked for") {
  World world;
  const net::Port port = free_port();
  const auto service = Service{[](const Request&) { return Response{}; }};
  const auto both = world.server->listen({{net::IpAddress{}, port}, Stack::Both}, service);
  REQUIRE(both);
  const net::SocketAddress v6 =
      *net::parse_socket_address("[::1]:" + std::to_string(net::number(port)));
  CHECK(get(on_loopback(port), "/"));
  if (!listen_on({{v6.ip, free_port()}})) {
    SKIP("no IPv6 on this host");
  }
  CHECK(get(v6, "/"));
  world.server->close(*both);
  const auto v6_only =
      world.server->listen({{net::IpAddress{net::Family::IPv6, {}}, port}}, service);
  REQUIRE(v6_only);
  CHECK(get(v6, "/"));
  CHECK(!get(on_loopback(port), "/"));
  CHECK(world.server->listen({{net::IpAddress{}, port}}, service));  // side by side
}

TEST_CASE("port 0 is nobody's") {
  const auto refused = listen_on({on_loopback(net::Port{0})});
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::Invalid);
}

TEST_CASE("without descriptors a peer waits, and is served when there are some again") {
  World world;
  const net::Port port = free_port();
  world.listen(port);
  Peer peer(on_loopback(port));  // may be accepted already
  Peer waiting(on_loopback(port));
  REQUIRE(get(on_loopback(port), "/"));
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 3;  // of those that are open already all work
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(net::number(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  std::this_thread::sleep_for(Millis(150));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(connected);
  const std::string request = "GET /late HTTP/1.1\r\n\r\n";
  CHECK(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) > 0);
  std::string heard;
  char buffer[512];
  for (ssize_t got = 0; (got = ::recv(socket.get(), buffer, sizeof buffer, 0)) > 0;) {
    heard.append(buffer, static_cast<std::size_t>(got));
  }
  CHECK(heard.ends_with("/late|"));
  // Those that waited longest without a word gave up their descriptors.
  CHECK(peer.hear().value_or("").empty());
  CHECK(waiting.hear().value_or("").empty());
}

TEST_CASE("listeners come and go while peers ask") {
  World world;
  const net::Port steady = free_port();
  world.listen(steady);
  std::atomic<bool> done = false;
  std::thread changes([&] {
    for (int i = 0; i < 200; ++i) {
      if (const auto id = world.server->listen({on_loopback(free_port())}, {})) {
        world.server->close(*id);
      }
    }
    done = true;
  });
  int answered = 0;
  while (!done) {
    answered += get(on_loopback(steady), "/") ? 1 : -1000;
  }
  changes.join();
  CHECK(answered > 0);
}

}  // namespace
}  // namespace shunt::http
