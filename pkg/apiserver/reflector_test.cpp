// The whole of it: a Reflector's thread, TLS, a server that streams.
#include "apiserver/reflector.h"

#include <poll.h>

#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "apiserver/connector.h"
#include "apiserver/testing/certificates.h"
#include "apiserver/testing/test_server.h"
#include "base/testing/temp_dir.h"

namespace shunt::apiserver {
namespace {

using kube::Node;
using shunt::testing::TempDir;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Authority;
using testing::Peer;
using testing::TestServer;

std::string event(const char* type, const char* name, int version) {
  return std::string(R"({"type":")") + type + R"(","object":{"metadata":{"name":")" + name +
         R"(","resourceVersion":")" + std::to_string(version) + "\"}}}\n";
}
std::string end_bookmark(int version) {
  return R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")" +
         std::to_string(version) + R"(","annotations":{"k8s.io/initial-events-end":"true"}}}})";
}

struct Fixture {
  explicit Fixture(TestServer::Handler handler)
      : server(
            {.ipv6 = false, .certificate = authority.issue("s", "IP:127.0.0.1")},
            std::move(handler)),
        outbox(wake) {
    dir.write("ca.crt", authority.pem());
    dir.write(
        "config",
        "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: ''}}]\n"
        "clusters: [{name: c, cluster: {certificate-authority: ca.crt, server: '" +
            server.url() + "'}}]\n");
    connector =
        *Connector::open({.kubeconfig = dir.path("config"), .master = "", .user_agent = "test"});
    options.node_name = "n";
    options.stall_timeout = milliseconds(100);
    options.backoff = {.first = milliseconds(1), .cap = milliseconds(5)};
  }

  // What a reader holds once `enough` says so, or after five seconds.
  template <typename Enough>
  std::map<std::string, std::string> read_until(Enough enough) {
    const auto deadline = Clock::now() + seconds(5);
    while (!enough(held) && Clock::now() < deadline) {
      pollfd fd{wake.fd(), POLLIN, 0};
      (void)::poll(&fd, 1, 100);
      wake.clear();
      auto mail = outbox.drain();
      for (const auto& [key, slot] : mail.changes) {
        if (slot.value) {
          held[key] = (*slot.value)->meta.resource_version;
          lists[key] = slot.list;
        } else {
          held.erase(key);
        }
      }
      if (mail.listed) {
        ++replacements;
        std::erase_if(held, [&](const auto& one) { return lists[one.first] < *mail.listed; });
      }
    }
    return held;
  }

  using Held = std::map<std::string, std::string>;
  std::map<std::string, std::uint32_t> lists;  // the last list that an object was seen after
  Authority authority;
  TestServer server;
  TempDir dir;
  WakeFd wake;
  Reflector<Node>::Outbox outbox;
  std::unique_ptr<Connector> connector;
  ReflectorOptions options;
  Held held;
  int replacements = 0;
};

void start_stream(Peer& peer) {
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST_CASE("a reflector lists, follows, and replaces a stream that stalls without listing again") {
  std::atomic<int> requests{0};
  Fixture fixture([&](Peer& peer) {
    const auto request = peer.request();
    if (!request) {
      return;
    }
    start_stream(peer);
    switch (++requests) {
      case 1:
        peer.chunk(event("ADDED", "a", 1) + event("ADDED", "b", 2));
        peer.chunk(end_bookmark(5));
        peer.chunk(event("DELETED", "b", 6));
        peer.chunk(event("MODIFIED", "a", 7).substr(0, 25));  // and then half-open
        break;
      case 2:
        if (request->find("resourceVersion=6&") != std::string::npos) {
          peer.chunk(event("MODIFIED", "a", 7));
        }
        return;  // cut
      default:
        if (request->find("resourceVersion=7&") != std::string::npos) {
          peer.chunk(event("ADDED", "c", 8));
        }
    }
    peer.hang();
  });
  Reflector<Node> reflector(*fixture.connector, fixture.options, fixture.outbox);
  CHECK_FALSE(reflector.status().synced);
  reflector.start();
  CHECK(fixture.read_until([](const auto& held) {
    return held.contains("c");
  }) == Fixture::Held{{"a", "7"}, {"c", "8"}});
  CHECK(fixture.replacements == 1);
  const auto before = Clock::now();
  reflector.stop();
  CHECK(Clock::now() - before < milliseconds(500));
  const ReflectorStatus status = reflector.status();
  CHECK(status.synced);
  CHECK(status.lists == 1);
  CHECK(status.watches >= 3);
  CHECK(status.resource_version == "8");
}

TEST_CASE("a reflector whose server is away keeps trying, and says nothing meanwhile") {
  std::atomic<bool> away{true};
  Fixture fixture([&](Peer& peer) {
    while (peer.request()) {
      if (away) {
        peer.answer(503, "starting");
        continue;
      }
      start_stream(peer);
      peer.chunk(end_bookmark(5));
      peer.hang();
    }
  });
  Reflector<Node> reflector(*fixture.connector, fixture.options, fixture.outbox);
  reflector.start();
  while (reflector.status().watches < 3) {
    std::this_thread::yield();
  }
  CHECK(fixture.outbox.drain().empty());
  away = false;
  (void)fixture.read_until([&](const auto&) { return fixture.replacements == 1; });
  CHECK(fixture.replacements == 1);
}

TEST_CASE("a reflector stops while it waits between attempts, and can be destroyed unstarted") {
  Fixture fixture([](Peer&) {});
  fixture.options.backoff = {.first = seconds(20)};
  const Reflector<Node> unstarted(*fixture.connector, fixture.options, fixture.outbox);
  Reflector<Node> reflector(*fixture.connector, fixture.options, fixture.outbox);
  reflector.start();
  while (fixture.server.connections() < 2) {
    std::this_thread::yield();
  }
  const auto before = Clock::now();
  reflector.stop();
  CHECK(Clock::now() - before < milliseconds(500));
}

}  // namespace
}  // namespace shunt::apiserver
