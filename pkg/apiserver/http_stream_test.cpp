// The HTTP client against servers on loopback that behave, and that do not.
#include "apiserver/http_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <thread>

#include "apiserver/testing/certificates.h"
#include "apiserver/testing/gzip.h"
#include "apiserver/testing/test_server.h"
#include "base/testing/temp_dir.h"
#include "base/wake_fd.h"

namespace shunt::apiserver {
namespace {

using shunt::testing::TempDir;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Authority;
using testing::Issued;
using testing::Peer;
using testing::TestServer;

const Authority& authority() {
  static const Authority one;
  return one;
}
TestServer::Options secured(const std::string& names = "IP:127.0.0.1") {
  return {.ipv6 = false, .certificate = authority().issue("server", names)};
}

std::string kubeconfig(
    const std::string& server, const std::string& cluster = "", const std::string& user = "") {
  return "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: '" +
         server + "'" + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

// A directory with a CA and a kubeconfig, and a connector made from them.
struct Client {
  explicit Client(
      const std::string& server,
      const std::string& cluster = "",
      const std::string& user = "",
      const std::string& ca = authority().pem()) {
    dir.write("ca.crt", ca);
    dir.write("config", kubeconfig(server, ", certificate-authority: ca.crt" + cluster, user));
  }
  Connector& connect() {
    auto opened = Connector::open(
        {.kubeconfig = dir.path("config"), .master = "", .user_agent = "kube-shunt/test"});
    REQUIRE(opened);
    connector = std::move(*opened);
    return *connector;
  }
  HttpStream& open(Millis stall = seconds(5), int stop_fd = -1) {
    stream = std::make_unique<HttpStream>(
        connect(), HttpOptions{.stall_timeout = stall, .limits = {}, .stop_fd = stop_fd});
    return *stream;
  }

  TempDir dir;
  std::unique_ptr<Connector> connector;
  std::unique_ptr<HttpStream> stream;
};

struct Got {
  int status = 0;  // 0: no answer began
  std::string body;
  Result<> end;
  std::optional<std::chrono::seconds> retry_after;
};

Got get(HttpStream& stream, const std::string& target = "/x", bool may_be_compressed = false) {
  Got out;
  const Exchange exchange = stream.send(
      {.target = target, .accept = "a/b, c/d", .may_be_compressed = may_be_compressed},
      {.on_head = [](const AnswerHead&) { return true; },
       .on_body =
           [&](std::string_view piece) {
             out.body += piece;
             return true;
           }});
  out.end = exchange.end;
  if (exchange.head) {
    out.status = exchange.head->status;
    out.retry_after = exchange.head->retry_after;
  }
  return out;
}
int error_of(const Got& got) { return got.end ? 0 : got.end.error().sys_errno; }

// Answers every request of a connection with what it was.
void echo(Peer& peer) {
  while (const auto request = peer.request()) {
    peer.answer(200, *request);
  }
}

TEST_CASE("a request says who asks, for what and in which form") {
  const TestServer server(secured(), echo);
  Client client(server.url() + "/prefix", "", "token: t0ken, as: alice");
  const Got got = get(client.open(), "/api?x=y");
  REQUIRE(got.end);
  CHECK(
      got.body ==
      "GET /prefix/api?x=y HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
          "\r\nUser-Agent: kube-shunt/test\r\nAccept: a/b, c/d\r\n"
          "Accept-Encoding: identity\r\nAuthorization: Bearer t0ken\r\n"
          "Impersonate-User: alice\r\n\r\n");
}

TEST_CASE("a connection is kept after a complete answer, and replaced when the server closed it") {
  std::atomic<int> left{2};
  const TestServer server(secured(), [&](Peer& peer) {
    while (left-- > 0 && peer.request()) {
      peer.answer(200, "ok");
    }
    left = 2;
  });
  Client client(server.url());
  HttpStream& stream = client.open();
  for (int i = 0; i < 6; ++i) {
    CHECK(get(stream).body == "ok");
  }
  CHECK(server.connections() >= 3);
  CHECK(server.connections() < 6);
}

TEST_CASE("chunked bodies and bodies until the end are read, and one cut short is an error") {
  const TestServer server(secured(), [](Peer& peer) {
    const auto request = peer.request();
    if (request->starts_with("GET /chunked")) {
      peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      peer.chunk("hel");
      peer.chunk("lo");
      peer.send("0\r\n\r\n");
    } else if (request->starts_with("GET /until-end")) {
      peer.send("HTTP/1.1 200 OK\r\n\r\nhello");
      peer.goodbye();
    } else if (request->starts_with("GET /truncated")) {
      peer.send("HTTP/1.1 200 OK\r\n\r\nhel");  // no goodbye: anybody may have cut it here
    } else if (request->starts_with("GET /short")) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    } else if (request->starts_with("GET /no-answer")) {
      peer.goodbye();
    } else {
      peer.send("HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'x'));
    }
  });
  Client client(server.url());
  HttpStream& stream = client.open();
  CHECK(get(stream, "/chunked").body == "hello");
  CHECK(get(stream, "/until-end").body == "hello");
  CHECK(get(stream, "/until-end").end);
  for (const char* target : {"/truncated", "/short"}) {
    const Got got = get(stream, target);
    CHECK(got.body == "hel");
    CHECK(error_of(got) == ECONNRESET);
  }
  CHECK(error_of(get(stream, "/no-answer")) == ECONNRESET);
  CHECK(get(stream, "/no-answer").status == 0);
  const Got flood = get(stream, "/flood");
  REQUIRE_FALSE(flood.end);
  CHECK(flood.end.error().code == Errc::Invalid);
}

TEST_CASE("redirects are not followed, and Retry-After is read") {
  const TestServer server(secured(), [](Peer& peer) {
    (void)peer.request();
    peer.answer(302, "elsewhere", "Location: https://127.0.0.1:1/\r\nRetry-After: 7\r\n");
    (void)peer.request();
    peer.answer(429, "", "Retry-After: Sun, 29 Nov 2026 16:53:57 GMT\r\n");
  });
  Client client(server.url());
  HttpStream& stream = client.open();
  const Got got = get(stream);
  CHECK(got.status == 302);
  CHECK(got.retry_after == seconds(7));
  CHECK_FALSE(get(stream).retry_after);
}

TEST_CASE("only a server that proves its name or address is spoken to") {
  struct Case {
    const char* name;
    std::string names;
    std::string host;
    std::string cluster;
    bool accepted;
  };
  const std::vector<Case> cases = {
      {"IPv4 among the names", "DNS:x,IP:127.0.0.1", "127.0.0.1", "", true},
      {"another address", "IP:127.0.0.2", "127.0.0.1", "", false},
      {"the address as a name", "DNS:127.0.0.1", "127.0.0.1", "", false},
      {"no name at all, but a common name", "", "127.0.0.1", ", tls-server-name: server", false},
      {"by name", "DNS:localhost", "localhost", "", true},
      {"another name", "DNS:example.com", "localhost", "", false},
      {"tls-server-name", "DNS:api.example", "127.0.0.1", ", tls-server-name: api.example", true},
      {"wildcard", "DNS:*.example", "127.0.0.1", ", tls-server-name: api.example", false},
      {"wildcard of two labels",
       "DNS:*.k8s.example",
       "127.0.0.1",
       ", tls-server-name: api.k8s.example",
       true},
      {"tls-server-name that does not match",
       "IP:127.0.0.1",
       "127.0.0.1",
       ", tls-server-name: api.example",
       false}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      std::atomic<int> requests{0};
      const TestServer server(secured(c.names), [&](Peer& peer) {
        while (peer.request()) {
          ++requests;
          peer.answer(200, "ok");
        }
      });
      Client client(
          "https://" + c.host + ":" + std::to_string(server.port()), c.cluster, "token: secret");
      const Got got = get(client.open());
      CHECK(got.end.has_value() == c.accepted);
      CHECK(requests == (c.accepted ? 1 : 0));
      if (!got.end) {
        CHECK(got.end.error().code == Errc::Denied);
        CHECK(got.end.error().what.find("secret") == std::string::npos);
      }
    }
  }
}

TEST_CASE("an IPv6 address is verified as well") {
  TestServer::Options options = secured("IP:::1");
  options.ipv6 = true;
  const TestServer server(options, echo);
  CHECK(get(Client(server.url()).open()).end);
  options.certificate = authority().issue("server", "IP:::2");
  const TestServer other(options, echo);
  CHECK(get(Client(other.url()).open()).end.error().code == Errc::Denied);
}

TEST_CASE("a server of another authority is refused, until the CA file says otherwise") {
  const TestServer server(secured(), echo);
  Client client(server.url(), "", "", Authority("someone else").pem());
  HttpStream& stream = client.open();
  const Got got = get(stream);
  REQUIRE_FALSE(got.end);
  CHECK(got.end.error().code == Errc::Denied);
  CHECK(got.status == 0);

  client.dir.write("ca.crt", authority().pem());
  CHECK(get(stream).end);
}

TEST_CASE("a client certificate is presented") {
  TestServer::Options options = secured();
  options.client_ca = authority().pem();
  const TestServer server(options, [](Peer& peer) {
    (void)peer.request();
    peer.answer(200, peer.client_name());
  });
  Client client(server.url(), "", "client-certificate: client.crt, client-key: client.key");
  const Issued issued = authority().issue("system:node", "");
  client.dir.write("client.crt", issued.certificate);
  client.dir.write("client.key", issued.key);
  CHECK(get(client.open()).body == "system:node");
  CHECK(get(Client(server.url()).open()).body.empty());
}

TEST_CASE("a 401 makes the exec plugin run again for the next request") {
  const TestServer server(secured(), [](Peer& peer) {
    while (const auto request = peer.request()) {
      const bool good = request->find("Bearer x2\r\n") != std::string::npos;
      peer.answer(good ? 200 : 401, "");
    }
  });
  Client client(
      server.url(),
      "",
      "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./plugin}");
  client.dir.write(
      "plugin",
      "#!/bin/sh\ncd " + client.dir.path() +
          "\nprintf x >> runs\n"
          "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":"
          "\"ExecCredential\",\"status\":{\"token\":\"x'$(wc -c < runs)'\"}}'\n",
      true);
  HttpStream& stream = client.open();
  CHECK(get(stream).status == 401);
  CHECK(get(stream).status == 200);
  CHECK(get(stream).status == 200);
  CHECK(client.dir.read("runs") == "xx");
}

TEST_CASE("plain http on loopback works, without credentials") {
  const TestServer server({}, echo);
  Client client(server.url(), "", "token: secret, as: alice");
  const Got got = get(client.open());
  REQUIRE(got.end);
  CHECK(got.body.find("secret") == std::string::npos);
  CHECK(got.body.find("Impersonate") == std::string::npos);
}

TEST_CASE("a refused connection is told from others") {
  const int port = [] {
    const TestServer server(secured(), echo);
    return server.port();
  }();
  Client client("https://127.0.0.1:" + std::to_string(port));
  CHECK(error_of(get(client.open())) == ECONNREFUSED);
}

TEST_CASE("a stream from which nothing comes for the stall timeout ends, a slow one does not") {
  const TestServer server(secured(), [](Peer& peer) {
    const auto request = peer.request();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    if (request->starts_with("GET /slow")) {
      for (const char c : std::string("slowly")) {
        std::this_thread::sleep_for(milliseconds(20));
        peer.chunk({&c, 1});
      }
      peer.send("0\r\n\r\n");
    } else {
      peer.chunk("half");
      peer.hang();
    }
  });
  Client client(server.url());
  HttpStream& stream = client.open(milliseconds(100));
  CHECK(get(stream, "/slow").body == "slowly");
  const Got got = get(stream, "/half-open");
  CHECK(got.body == "half");
  CHECK(error_of(got) == ETIMEDOUT);
}

// A port whose accept queue is full: a connect to it neither succeeds nor fails.
class SilentPort {
 public:
  SilentPort() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    REQUIRE(::bind(listener_.get(), address, size) == 0);
    REQUIRE(::listen(listener_.get(), 0) == 0);
    REQUIRE(::getsockname(listener_.get(), address, &size) == 0);
    for (int i = 0; i < 4; ++i) {
      fillers_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      (void)::connect(fillers_.back().get(), address, size);  // in progress, for ever
    }
  }
  int port() const { return ntohs(address_.sin_port); }

 private:
  UniqueFd listener_;
  sockaddr_in address_{};
  std::vector<UniqueFd> fillers_;
};

TEST_CASE("stop ends a request wherever the server hangs") {
  const auto stopped_within = [](const std::string& url) {
    WakeFd stop;
    Client client(url);
    HttpStream& stream = client.open(seconds(60), stop.fd());
    Got got;
    std::thread requester([&] { got = get(stream); });
    std::this_thread::sleep_for(milliseconds(50));
    const auto before = Clock::now();
    stop.ring();
    requester.join();
    CHECK(error_of(got) == ECANCELED);
    CHECK(Clock::now() - before < milliseconds(500));
  };
  SECTION("while connecting") {
    const SilentPort silent;
    stopped_within("https://127.0.0.1:" + std::to_string(silent.port()));
  }
  SECTION("in the TLS handshake") {
    const TestServer server({}, [](Peer& peer) { peer.hang(); });
    stopped_within("https://127.0.0.1:" + std::to_string(server.port()));
  }
  SECTION("before the answer") {
    const TestServer server(secured(), [](Peer& peer) { peer.hang(); });
    stopped_within(server.url());
  }
  SECTION("inside the answer") {
    const TestServer server(secured(), [](Peer& peer) {
      (void)peer.request();
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
      peer.hang();
    });
    stopped_within(server.url());
  }
  SECTION("under a flood") {
    std::atomic<bool> ending{false};
    const TestServer server(secured(), [&](Peer& peer) {
      (void)peer.request();
      peer.send("HTTP/1.1 200 OK\r\n\r\n");
      while (!ending) {
        peer.send(std::string(1000, 'x'));
      }
    });
    stopped_within(server.url());
    ending = true;
  }
}

TEST_CASE("connecting and the TLS handshake have deadlines of their own") {
  const auto error_with = [](const std::string& url) {
    Client client(url);
    HttpStream stream(
        client.connect(),
        {.stall_timeout = seconds(60),
         .limits = {.dial = milliseconds(50), .handshake = milliseconds(50)},
         .stop_fd = -1});
    return error_of(get(stream));
  };
  const SilentPort silent;
  CHECK(error_with("https://127.0.0.1:" + std::to_string(silent.port())) == ETIMEDOUT);
  const TestServer server({}, [](Peer& peer) { peer.hang(); });
  CHECK(error_with("https://127.0.0.1:" + std::to_string(server.port())) == ETIMEDOUT);
}

TEST_CASE("a sink that has enough ends the request in good order") {
  const TestServer server(secured(), [](Peer& peer) {
    (void)peer.request();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    peer.chunk("enough");
    peer.hang();
  });
  Client client(server.url());
  const Exchange got = client.open().send(
      {.target = "/x", .accept = "a/b"},
      {.on_head = [](const AnswerHead&) { return true; },
       .on_body = [](std::string_view) { return false; }});
  CHECK(got.end);
}

std::string coded(const std::string& coding, const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Encoding: " + coding +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_CASE("gzip is asked for and undone when the answer may be compressed") {
  const std::string text(300'000, 'x');
  const TestServer server(secured("DNS:localhost"), [&](Peer& peer) {
    while (const auto request = peer.request()) {
      const bool asked = request->find("\r\nAccept-Encoding: gzip\r\n") != std::string::npos;
      peer.send(asked ? coded("gzip", testing::gzip(text)) : coded("identity", "plain"));
    }
  });
  const std::string by_name = "https://localhost:" + std::to_string(server.port());
  {
    Client client(by_name);
    HttpStream& stream = client.open();
    const Got got = get(stream, "/x", true);
    REQUIRE(got.end);
    CHECK(got.body == text);
    // The same connection, and no gzip: a watch.
    CHECK(get(stream).body == "plain");
    CHECK(server.connections() == 1);
  }
  {
    Client client(by_name, ", disable-compression: true");
    CHECK(get(client.open(), "/x", true).body == "plain");
  }
}

TEST_CASE("a server on a loopback address is not asked for gzip") {
  const TestServer server(secured(), echo);
  Client client(server.url());
  const Got got = get(client.open(), "/x", true);
  CHECK(got.body.find("Accept-Encoding: identity") != std::string::npos);
}

TEST_CASE("a coded answer that is broken, or was not asked for, is an error") {
  const std::string packed = testing::gzip("hello hello hello");
  struct Case {
    const char* name;
    std::string answer;
    bool asked;
    const char* error;
  };
  for (const Case& c : std::vector<Case>{
           {"not asked for", coded("gzip", packed), false, "was not asked for"},
           {"another coding", coded("br", packed), true, "was not asked for"},
           {"no gzip", coded("gzip", "hello"), true, "is corrupt"},
           {"cut short", coded("gzip", packed.substr(0, 20)), true, "ends too early"},
           {"empty", coded("gzip", ""), true, "ends too early"}}) {
    DYNAMIC_SECTION(c.name) {
      const TestServer server(secured("DNS:localhost"), [&](Peer& peer) {
        (void)peer.request();
        peer.send(c.answer);
        peer.hang();
      });
      Client client("https://localhost:" + std::to_string(server.port()));
      const Got got = get(client.open(), "/x", c.asked);
      REQUIRE_FALSE(got.end);
      CHECK(got.end.error().what.find(c.error) != std::string::npos);
      CHECK(error_of(got) == 0);  // not a lost connection: it would only be sent again
    }
  }
}

TEST_CASE("a name that cannot be resolved is an error") {
  Client client("https://no-such-host.invalid:6443");
  const Got got = get(client.open());
  REQUIRE_FALSE(got.end);
  CHECK(got.end.error().what.find("no-such-host.invalid") != std::string::npos);
}

}  // namespace
}  // namespace shunt::apiserver
