// A client whose SYN came while our table was gone, and what becomes of its next connection from
// the same port.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <thread>

#include "conntrack/tracked.h"
#include "daemon/load.h"
#include "daemon/needs_root.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr auto kBeforeTcpTriesAgain = 900ms;

lab::Answer::Kind connect(const Shop& shop, const char* to, std::chrono::milliseconds patience) {
  lab::Question question;
  question.from = address("198.51.100.7:40001");
  question.to = address(to);
  question.timeout = patience;
  return ask(shop.world.lab().outside(), question).kind;
}

// Entries of that client that lead to the Service itself.
std::size_t untranslated(const Shop& shop, const char* to) {
  return shop.world.lab().node().run([&] {
    const auto all = TrackedFlows().all(net::Family::IPv4);
    return static_cast<std::size_t>(std::ranges::count_if(all, [&](const auto& flow) {
      return flow.original.from == address("198.51.100.7:40001") &&
             flow.original.to == address(to) && flow.reply.from == address(to) && !flow.answered;
    }));
  });
}

TEST_CASE("a port whose SYN met no rules is good again as soon as they are back") {
  SHUNT_NEEDS_ROOT();
  const Shop shop;
  const char* const web = "10.112.0.10:80";
  REQUIRE(::kill(shop.world.daemon_pid(), SIGSTOP) == 0);
  // As a firewall is loaded again. It is what still tracks connections then; without it the kernel
  // does so for moments only, while our table goes and comes.
  shop.world.on_node(
      "nft -f - <<'END'\n"
      "flush ruleset\n"
      "table ip firewall {\n"
      "  chain forward {\n"
      "    type filter hook forward priority 0; policy accept;\n"
      "    ct state established accept\n"
      "  }\n"
      "}\n"
      "END\n");
  CHECK(connect(shop, web, 200ms) != lab::Answer::Kind::Answered);
  CHECK(untranslated(shop, web) == 1);

  REQUIRE(::kill(shop.world.daemon_pid(), SIGCONT) == 0);
  const auto deadline = Steady::now() + 5s;
  while (untranslated(shop, web) != 0 && Steady::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  CHECK(untranslated(shop, web) == 0);
  CHECK(connect(shop, web, kBeforeTcpTriesAgain) == lab::Answer::Kind::Answered);
  const auto counters = shop.world.settle().at("conntrack").at("IPv4");
  CHECK(counters.at("deleted") == 1);
}

}  // namespace
}  // namespace shunt::test
