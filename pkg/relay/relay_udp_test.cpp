#include "relay/testing/fixture.h"

namespace shunt::relay {
namespace {

using namespace testing;

TEST_CASE("a UDP client keeps its endpoint, and gets another at once when that goes") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:53", Protocol::Udp, "one");
  const Server two("10.64.0.2:53", Protocol::Udp, "two");
  const Server six("[fd64::1]:53", Protocol::Udp, "six");
  Fixture f;
  f.set(Protocol::Udp, {"[fd64::1]:53"}, std::nullopt, Family::IPv6);
  f.set(Protocol::Udp, {"10.64.0.1:53"});
  const UniqueFd fd = client(Protocol::Udp);
  std::string first;
  REQUIRE(eventually([&] { return (first = ask(fd)).starts_with("one:"); }));
  f.set(Protocol::Udp, {"10.64.0.1:53", "10.64.0.2:53"});
  for (int i = 0; i < 16; ++i) {
    CHECK(ask(fd) == first);
  }
  f.set(Protocol::Udp, {"10.64.0.2:53"});
  CHECK(eventually([&] { return ask(fd).starts_with("two:"); }));
  CHECK(ask(client(Protocol::Udp, Family::IPv6)).starts_with("six:"));
  f.remove();
  CHECK(eventually([&] { return ask(fd) == "reset"; }));
}

TEST_CASE("UDP conversations are bounded, and the quiet ones end") {
  NEEDS_OWN_NETWORK();
  const Server one("10.64.0.1:53", Protocol::Udp, "one");
  Limits limits;
  SECTION("the one that was quiet for longest makes room") {
    limits.udp.flows = 2;
    Fixture f(limits);
    f.set(Protocol::Udp, {"10.64.0.1:53"});
    const UniqueFd a = client(Protocol::Udp);
    const UniqueFd b = client(Protocol::Udp);
    const UniqueFd c = client(Protocol::Udp);
    std::string first_a;
    REQUIRE(eventually([&] { return (first_a = ask(a)).starts_with("one:"); }));
    const std::string first_b = ask(b);
    CHECK(ask(a) == first_a);  // b is the quiet one now
    CHECK(ask(c).starts_with("one:"));
    CHECK(ask(a) == first_a);
    const std::string second_b = ask(b);
    CHECK(second_b.starts_with("one:"));
    CHECK(second_b != first_b);
  }
  SECTION("after the idle time it is forgotten") {
    limits.udp.idle = milliseconds(50);
    Fixture f(limits);
    f.set(Protocol::Udp, {"10.64.0.1:53"});
    const UniqueFd fd = client(Protocol::Udp);
    std::string first;
    REQUIRE(eventually([&] { return (first = ask(fd)).starts_with("one:"); }));
    CHECK(eventually([&] {
      std::this_thread::sleep_for(milliseconds(100));
      return ask(fd) != first;
    }));
  }
}

}  // namespace
}  // namespace shunt::relay
