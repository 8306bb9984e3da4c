#include <netinet/in.h>
#include <sys/resource.h>

#include <set>

#include "relay/testing/fixture.h"

namespace shunt::relay {
namespace {

using namespace testing;

TEST_CASE("a NodePort answers on 127.0.0.1 and ::1, each with endpoints of its family") {
  NEEDS_OWN_NETWORK();
  const Server four("10.64.0.1:80", Protocol::Tcp, "four");
  const Server six("[fd64::1]:80", Protocol::Tcp, "six");
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.1:80"});
  CHECK(eventually([] { return tcp_answer() == "four"; }));
  CHECK(tcp_answer(Family::IPv6) == "refused");
  f.set(Protocol::Tcp, {"[fd64::1]:80"}, std::nullopt, Family::IPv6);
  CHECK(eventually([] { return tcp_answer(Family::IPv6) == "six"; }));
  CHECK(tcp_answer() == "four");
}

TEST_CASE("new connections are spread over the endpoints") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "one");
  const Server two("10.64.0.2:80", Protocol::Tcp, "two");
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.1:80", "10.64.0.2:80"});
  REQUIRE(eventually([] { return tcp_answer() != "refused"; }));
  std::set<std::string> seen;
  for (int i = 0; i < 64; ++i) {
    seen.insert(tcp_answer());
  }
  CHECK(seen == std::set<std::string>{"one", "two"});
}

TEST_CASE("without endpoints nobody listens, and what is established goes on") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "one");
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.1:80"});
  REQUIRE(eventually([] { return tcp_answer() == "one"; }));
  const UniqueFd fd = client(Protocol::Tcp);
  REQUIRE(next_from(fd.get()) == "one");
  SECTION("the endpoint goes") { f.set(Protocol::Tcp, {}); }
  SECTION("the Service goes") { f.remove(); }
  CHECK(eventually([] { return tcp_answer() == "refused"; }));
  CHECK(ask(fd) == "?");
}

TEST_CASE("the client's end is passed on, and so is what the endpoint still has to say") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "one");
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.1:80"});
  REQUIRE(eventually([] { return tcp_answer() == "one"; }));
  const UniqueFd fd = client(Protocol::Tcp);
  REQUIRE(next_from(fd.get()) == "one");
  REQUIRE(::shutdown(fd.get(), SHUT_WR) == 0);
  CHECK(all_from(fd.get()) == "bye");
}

TEST_CASE("much data arrives whole although both sides are slow to read") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "");
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.1:80"});
  UniqueFd fd;
  REQUIRE(eventually([&] {
    fd = client(Protocol::Tcp);
    return fd && ask(fd) == "?";
  }));
  std::string sent;
  for (int i = 0; sent.size() < 4'000'000; ++i) {
    sent += std::to_string(i) + ",";
  }
  std::size_t done = 0;
  // The echo is not read before the sender is stuck: every buffer on the way is full then.
  while (done < sent.size()) {
    const ssize_t put = ::send(fd.get(), sent.data() + done, sent.size() - done, MSG_NOSIGNAL);
    pollfd wait{fd.get(), POLLOUT, 0};
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (::poll(&wait, 1, 200) == 0) {
      break;
    }
  }
  std::thread rest([&] {
    while (done < sent.size()) {
      const ssize_t put = ::send(fd.get(), sent.data() + done, sent.size() - done, MSG_NOSIGNAL);
      pollfd wait{fd.get(), POLLOUT, 0};
      done += put > 0 ? static_cast<std::size_t>(put) : 0;
      (void)::poll(&wait, 1, 5000);
    }
    (void)::shutdown(fd.get(), SHUT_WR);
  });
  const std::string got = all_from(fd.get());
  rest.join();
  CHECK(got.size() == sent.size() + 3);
  CHECK(got == sent + "bye");
}

TEST_CASE("a client of an endpoint that refuses is reset") {
  NEEDS_OWN_NETWORK();
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.3:80"});
  UniqueFd fd;
  REQUIRE(eventually([&] {
    fd = client(Protocol::Tcp);
    pollfd wait{fd.get(), POLLOUT, 0};
    return ::poll(&wait, 1, 1000) == 1 && (wait.revents & POLLERR) == 0;
  }));
  CHECK(next_from(fd.get()) == "reset");
}

TEST_CASE("with session affinity this machine is one client") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "one");
  const Server two("10.64.0.2:80", Protocol::Tcp, "two");
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.1:80", "10.64.0.2:80"}, std::chrono::seconds(10'800));
  REQUIRE(eventually([] { return tcp_answer() != "refused"; }));
  const std::string first = tcp_answer();
  for (int i = 0; i < 32; ++i) {
    CHECK(tcp_answer() == first);
  }
  const bool was_one = first == "one";
  f.set(Protocol::Tcp, {was_one ? "10.64.0.2:80" : "10.64.0.1:80"}, std::chrono::seconds(10'800));
  CHECK(eventually([&] { return tcp_answer() == (was_one ? "two" : "one"); }));
}

TEST_CASE("a port that somebody else holds is taken when it is free") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "one");
  std::optional<Server> other;
  other.emplace("127.0.0.1:30080", Protocol::Tcp, "other");
  Limits limits;
  limits.bind_retry = milliseconds(20);
  Fixture f(limits);
  f.set(Protocol::Tcp, {"10.64.0.1:80"});
  std::this_thread::sleep_for(milliseconds(60));
  CHECK(tcp_answer() == "other");
  other.reset();
  CHECK(eventually([] { return tcp_answer() == "one"; }));
}

TEST_CASE("connections beyond the bound wait for one to end") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "one");
  Limits limits;
  limits.connections = 1;
  Fixture f(limits);
  f.set(Protocol::Tcp, {"10.64.0.1:80"});
  UniqueFd first;
  REQUIRE(eventually([&] {
    first = client(Protocol::Tcp);
    return first && next_from(first.get()) == "one";
  }));
  const UniqueFd second = client(Protocol::Tcp);
  CHECK_FALSE(readable(second.get(), 100));
  CHECK(ask(first) == "?");
  first.reset();
  CHECK(next_from(second.get()) == "one");
}

TEST_CASE("with few descriptors the relay leaves some to the rest") {
  for (const std::size_t all : {0UL, 3UL, 100UL, 1024UL, 5000UL, 1UL << 40}) {
    const Limits limits = limits_within(all);
    CHECK(2 * limits.connections + limits.udp.flows + std::min(all / 2, 256UL) <= all);
  }
  CHECK(limits_within(1024).connections > 100);
  CHECK(limits_within(1 << 20).connections == 1024);
  CHECK(limits_within(1 << 20).udp.flows == 4096);
}

TEST_CASE("a lack of descriptors is a pause, not the end") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:80", Protocol::Tcp, "one");
  Fixture f;
  f.set(Protocol::Tcp, {"10.64.0.1:80"});
  REQUIRE(eventually([] { return tcp_answer() == "one"; }));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const UniqueFd fd = client(Protocol::Tcp);
  REQUIRE(next_from(fd.get()) == "one");
  const UniqueFd late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit none = before;
  none.rlim_cur = 3;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  sockaddr_in raw{};
  raw.sin_family = AF_INET;
  raw.sin_port = htons(net::number(kPort));
  raw.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = ::connect(late.get(), reinterpret_cast<sockaddr*>(&raw), sizeof raw);
  const bool answered = readable(late.get(), 100);
  const std::string old_one = ask(fd);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(connected == 0);
  CHECK_FALSE(answered);
  CHECK(old_one == "?");
  CHECK(next_from(late.get()) == "one");
}

}  // namespace
}  // namespace shunt::relay
