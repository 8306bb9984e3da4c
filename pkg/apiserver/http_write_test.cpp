// Writes through the HTTP client, and who is told of a request. Over plain HTTP on loopback, where
// nothing of it differs.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <mutex>
#include <vector>

#include "apiserver/http_stream.h"
#include "apiserver/testing/test_server.h"
#include "base/testing/temp_dir.h"

namespace shunt::apiserver {
namespace {

using shunt::testing::TempDir;
using testing::Peer;
using testing::TestServer;

struct Client {
  explicit Client(const std::string& server) {
    dir.write(
        "config",
        "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: ''}}]\n"
        "clusters: [{name: c, cluster: {server: '" +
            server + "'}}]\n");
    auto opened = Connector::open(
        {.kubeconfig = dir.path("config"),
         .master = "",
         .user_agent = "t",
         .on_request = [this](const RequestSeen& one) {
           const std::lock_guard lock(mutex);
           std::string line(one.method);
           line.append(" ").append(one.host).append(" ").append(one.status);
           seen.push_back(line);
           timely = timely && one.duration.count() >= 0;
         }});
    REQUIRE(opened);
    connector = std::move(*opened);
    stream.emplace(*connector, HttpOptions{.stall_timeout = Millis(3000), .limits = {}});
  }

  TempDir dir;
  std::mutex mutex;
  std::vector<std::string> seen;
  bool timely = true;
  std::unique_ptr<Connector> connector;
  std::optional<HttpStream> stream;
};

struct Got {
  int status = 0;
  std::string body;
  int error = 0;
};

Got send(Client& client, const Request& request) {
  Got got;
  const Exchange exchange = client.stream->send(
      request,
      {.on_head = [](const AnswerHead&) { return true; },
       .on_body =
           [&](std::string_view piece) {
             got.body += piece;
             return true;
           }});
  got.status = exchange.head ? exchange.head->status : 0;
  got.error = exchange.end ? 0 : exchange.end.error().sys_errno;
  return got;
}

Request post(const std::string& body, bool repeatable = false) {
  return {
      .target = "/things",
      .accept = "application/json",
      .method = Method::Post,
      .content_type = "application/json",
      .body = body,
      .repeatable = repeatable};
}

TEST_CASE("a body is sent with its type and its length") {
  const TestServer server({}, [](Peer& peer) {
    while (const auto request = peer.request()) {
      peer.answer(201, *request);
    }
  });
  Client client(server.url());
  const Got got = send(client, post("{\"a\":1}"));
  CHECK(got.status == 201);
  CHECK(got.body.starts_with("POST /things HTTP/1.1\r\n"));
  CHECK(got.body.find("\r\nContent-Type: application/json\r\n") != std::string::npos);
  CHECK(got.body.ends_with("\r\nContent-Length: 7\r\n\r\n{\"a\":1}"));

  Request patch = post(std::string(200'000, 'x'));
  patch.method = Method::Patch;
  patch.content_type = "application/merge-patch+json";
  const Got large = send(client, patch);
  CHECK(large.status == 201);
  CHECK(large.body.starts_with("PATCH /things HTTP/1.1\r\n"));
  CHECK(large.body.ends_with(patch.body));
  CHECK(server.connections() == 1);
}

TEST_CASE("an empty body has a length, too") {
  const TestServer server({}, [](Peer& peer) { peer.answer(200, peer.request().value_or("")); });
  Client client(server.url());
  CHECK(send(client, post("")).body.ends_with("\r\nContent-Length: 0\r\n\r\n"));
}

// Answers the first request of a connection, and hangs up after the second has come.
void answer_once(Peer& peer, std::atomic<int>& came) {
  if (peer.request()) {
    ++came;
    peer.answer(200, "first");
    came += peer.request() ? 1 : 0;
  }
}

TEST_CASE("a write whose outcome is unknown is sent again only if that does no harm") {
  std::atomic<int> came{0};
  const TestServer server({}, [&](Peer& peer) { answer_once(peer, came); });
  Client client(server.url());
  REQUIRE(send(client, post("1")).status == 200);
  const Got lost = send(client, post("2"));
  CHECK(lost.status == 0);
  CHECK(lost.error == ECONNRESET);
  CHECK(server.connections() == 1);

  REQUIRE(send(client, post("3")).status == 200);
  const Got again = send(client, post("4", /*repeatable=*/true));
  CHECK(again.status == 200);
  CHECK(server.connections() == 3);
  CHECK(came == 5);
}

TEST_CASE("the observer hears of each request once, with how it went") {
  std::atomic<int> came{0};
  std::string host;
  {
    const TestServer server({}, [&](Peer& peer) { answer_once(peer, came); });
    Client client(server.url());
    host = client.connector->server().substr(std::string("http://").size());
    REQUIRE(send(client, post("1")).status == 200);
    REQUIRE(send(client, post("2", /*repeatable=*/true)).status == 200);
    CHECK(send(client, post("3")).status == 0);
    CHECK(
        client.seen ==
        std::vector<std::string>{
            "POST " + host + " 200", "POST " + host + " 200", "POST " + host + " <error>"});
    CHECK(client.timely);
  }
  Client client("http://" + host);
  const Got got = send(client, {.target = "/x", .accept = "a/b"});
  CHECK(got.error == ECONNREFUSED);
  CHECK(client.seen == std::vector<std::string>{"GET " + host + " <error>"});
}

}  // namespace
}  // namespace shunt::apiserver
