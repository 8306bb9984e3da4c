#include "apiserver/credentials.h"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <thread>

#include "apiserver/testing/certificates.h"
#include "base/testing/temp_dir.h"
#include "base/wake_fd.h"

namespace shunt::apiserver {
namespace {

using shunt::testing::TempDir;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Authority;
using testing::Issued;

struct FakeTime {
  Clock::time_point now{std::chrono::hours(1)};
  std::int64_t unix_seconds = 1'700'000'000;

  TimeSource source() {
    return {[this] { return now; }, [this] { return unix_seconds; }};
  }
  void pass(seconds time) {
    now += time;
    unix_seconds += time.count();
  }
};

Access access_to(const char* server = "https://10.0.0.1:6443") {
  Access access;
  access.server = *parse_server_url(server);
  return access;
}

std::string authorization(Credentials& credentials) {
  const auto identity = credentials.current(-1);
  if (!identity) {
    return "error: " + identity.error().what;
  }
  for (const auto& [name, value] : (*identity)->headers) {
    if (name == "Authorization") {
      return value;
    }
  }
  return "none";
}

TEST_CASE("a token file is read again after 50 seconds, and after a 401") {
  TempDir dir;
  FakeTime time;
  Access access = access_to();
  access.token_file = dir.write("token", "one\n");
  const auto opened = Credentials::open(access, time.source());
  REQUIRE(opened);
  Credentials& credentials = **opened;
  CHECK(authorization(credentials) == "Bearer one");
  const auto first = (*credentials.current(-1))->generation;

  dir.write("token", "two");
  time.pass(seconds(50));
  CHECK(authorization(credentials) == "Bearer one");
  time.pass(seconds(1));
  CHECK(authorization(credentials) == "Bearer two");
  const auto second = (*credentials.current(-1))->generation;
  CHECK(second != first);

  dir.write("token", "three");
  credentials.refused(first);  // somebody else's old answer
  CHECK(authorization(credentials) == "Bearer two");
  credentials.refused(second);
  CHECK(authorization(credentials) == "Bearer three");
}

TEST_CASE("a token file that cannot be read, or is empty, keeps the last token") {
  TempDir dir;
  FakeTime time;
  Access access = access_to();
  access.token_file = dir.write("token", "one");
  const auto opened = Credentials::open(access, time.source());
  REQUIRE(opened);
  dir.write("token", " \n");
  time.pass(seconds(60));
  CHECK(authorization(**opened) == "Bearer one");
  std::filesystem::remove(access.token_file);
  time.pass(seconds(60));
  CHECK(authorization(**opened) == "Bearer one");
  dir.write("token", "two");
  time.pass(seconds(60));
  CHECK(authorization(**opened) == "Bearer two");
}

TEST_CASE("a token file wins over the token, which is there until it can be read") {
  TempDir dir;
  FakeTime time;
  Access access = access_to();
  access.token = "inline";
  access.token_file = dir.path("token");
  const auto opened = Credentials::open(access, time.source());
  REQUIRE(opened);
  CHECK(authorization(**opened) == "Bearer inline");
  dir.write("token", "file");
  time.pass(seconds(60));
  CHECK(authorization(**opened) == "Bearer file");

  access.token.clear();
  access.token_file = dir.path("gone");
  const auto none = Credentials::open(access, time.source());
  REQUIRE_FALSE(none);
  CHECK(none.error().what.find("gone") != std::string::npos);
}

TEST_CASE("a token that would write headers of its own is refused and not repeated") {
  Access access = access_to();
  access.token = "secret\r\nHost: x";
  const auto opened = Credentials::open(access);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().what.find("secret") == std::string::npos);
}

TEST_CASE("a user name and a password make basic authentication") {
  Access access = access_to();
  access.username = "user";
  access.password = "pass:word";
  access.impersonation = {{"Impersonate-User", "alice"}};
  const auto opened = Credentials::open(access);
  REQUIRE(opened);
  CHECK(
      (*(*opened)->current(-1))->headers ==
      Headers{
          {"Authorization", "Basic " + std::string("dXNlcjpwYXNzOndvcmQ=")},
          {"Impersonate-User", "alice"}});
}

TEST_CASE("there are no credentials on plain http") {
  Access access = access_to("http://127.0.0.1:8080");
  access.token = "secret";
  access.impersonation = {{"Impersonate-User", "alice"}};
  const auto opened = Credentials::open(access);
  REQUIRE(opened);
  const auto identity = (*opened)->current(-1);
  CHECK((*identity)->headers.empty());
  CHECK_FALSE((*identity)->tls);
}

TEST_CASE("TLS files are read again when they change, and kept while they make no sense") {
  TempDir dir;
  const Authority authority;
  const Issued one = authority.issue("one", "");
  const Issued two = authority.issue("two", "");
  Access access = access_to();
  access.ca.file = dir.write("ca", authority.pem());
  access.certificate.file = dir.write("crt", one.certificate);
  access.key.file = dir.write("key", one.key);
  const auto opened = Credentials::open(access);
  REQUIRE(opened);
  const auto tls = [&] { return (*(*opened)->current(-1))->tls; };
  const auto first = tls();
  CHECK(tls() == first);
  dir.write("crt", two.certificate);  // halfway through a rotation
  CHECK(tls() == first);
  dir.write("key", two.key);
  const auto second = tls();
  CHECK(second != first);
  dir.write("ca", "");
  CHECK(tls() == second);
  dir.write("ca", "rubbish");
  CHECK(tls() == second);
  std::filesystem::remove(access.ca.file);
  CHECK(tls() == second);
  dir.write("ca", authority.pem() + Authority("another").pem());
  CHECK(tls() != second);
}

TEST_CASE("TLS material that cannot be used is an error from the start") {
  const Authority authority;
  const Issued one = authority.issue("one", "");
  struct Case {
    const char* name;
    PemSource ca;
    PemSource certificate;
    PemSource key;
  };
  for (const Case& c : std::vector<Case>{
           {"no CA file", {"", "/nonexistent"}, {}, {}},
           {"CA is rubbish", {"secret", ""}, {}, {}},
           {"certificate is rubbish", {authority.pem(), ""}, {"secret", ""}, {one.key, ""}},
           {"key is rubbish", {authority.pem(), ""}, {one.certificate, ""}, {"secret", ""}},
           {"key of another",
            {authority.pem(), ""},
            {one.certificate, ""},
            {authority.issue("two", "").key, ""}}}) {
    DYNAMIC_SECTION(c.name) {
      Access access = access_to();
      access.ca = c.ca;
      access.certificate = c.certificate;
      access.key = c.key;
      const auto opened = Credentials::open(access);
      REQUIRE_FALSE(opened);
      CHECK(opened.error().what.find("secret") == std::string::npos);
    }
  }
}

TEST_CASE(
    "in a cluster, a missing CA file means this system's roots, and a missing token an error") {
  TempDir dir;
  const auto access =
      in_cluster_access({.host = "10.0.0.1", .port = "443", .directory = dir.path()});
  REQUIRE(access);
  CHECK_FALSE(Credentials::open(*access));
  dir.write("token", "t");
  const auto opened = Credentials::open(*access);
  REQUIRE(opened);
  const auto tls = [&] { return (*(*opened)->current(-1))->tls; };
  const auto system = tls();
  CHECK(tls() == system);
  dir.write("ca.crt", Authority().pem());
  const auto own = tls();
  CHECK(own != system);
  std::filesystem::remove(dir.path("ca.crt"));
  CHECK(tls() == own);  // never back to the system's roots
}

// A plugin that says how often it ran, and what it was told.
class Plugin {
 public:
  explicit Plugin(const std::string& status) {
    set(status);
    access_.exec = ExecPlugin{
        .api_version = "client.authentication.k8s.io/v1",
        .command = dir_.path("plugin"),
        .args = {"arg"},
        .env = {{"STATUS_FILE", dir_.path("status")}},
        .install_hint = "",
        .provide_cluster_info = true,
        .cluster_config_json = R"({"audience":"x"})"};
    dir_.write(
        "plugin",
        "#!/bin/sh\ncd " + dir_.path() +
            "\nprintf x >> runs\nprintf '%s' \"$KUBERNETES_EXEC_INFO\" > info\n"
            "echo secret-in-diagnostics >&2\n[ \"$1\" = arg ] && cat \"$STATUS_FILE\"\n"
            "[ ! -e fail ]\n",
        true);
  }
  void set(const std::string& status, const std::string& version = "v1") {
    dir_.write(
        "status",
        R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/)" + version +
            R"(","status":)" + status + "}");
  }
  std::size_t runs() const { return dir_.read("runs").size(); }

  TempDir dir_;
  FakeTime time_;
  Access access_ = access_to();
};

TEST_CASE("an exec plugin's token is kept until it expires, or the server refuses it") {
  Plugin plugin(R"({"token":"one","expirationTimestamp":"2023-11-14T22:14:20Z"})");
  const auto opened = Credentials::open(plugin.access_, plugin.time_.source());
  REQUIRE(opened);
  Credentials& credentials = **opened;
  CHECK(plugin.runs() == 0);
  CHECK(authorization(credentials) == "Bearer one");
  CHECK(authorization(credentials) == "Bearer one");
  CHECK(plugin.runs() == 1);
  CHECK(
      plugin.dir_.read("info") ==
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":)"
      R"({"cluster":{"config":{"audience":"x"},"server":"https://10.0.0.1:6443"},)"
      R"("interactive":false}})");

  plugin.set(R"({"token":"two"})");
  plugin.time_.pass(seconds(60));  // 22:14:20
  CHECK(authorization(credentials) == "Bearer two");
  plugin.time_.pass(std::chrono::hours(1000));
  CHECK(authorization(credentials) == "Bearer two");
  CHECK(plugin.runs() == 2);

  plugin.set(R"({"token":"three"})");
  credentials.refused((*credentials.current(-1))->generation);
  CHECK(authorization(credentials) == "Bearer three");
  CHECK(plugin.runs() == 3);
}

TEST_CASE("an exec plugin's certificate is presented") {
  const Authority authority;
  const Issued issued = authority.issue("from-plugin", "");
  const auto escaped = [](const std::string& pem) {
    std::string out;
    for (const char c : pem) {
      out += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return out;
  };
  Plugin plugin(
      R"({"clientCertificateData":")" + escaped(issued.certificate) + R"(","clientKeyData":")" +
      escaped(issued.key) + R"("})");
  const auto opened = Credentials::open(plugin.access_, plugin.time_.source());
  REQUIRE(opened);
  const auto identity = (*opened)->current(-1);
  REQUIRE(identity);
  CHECK((*identity)->tls);
  CHECK((*identity)->headers.empty());
}

TEST_CASE("an exec plugin's bad answers are errors that do not repeat them") {
  const std::string v1 = "client.authentication.k8s.io/v1";
  const auto answer = [&](const std::string& status) {
    return R"({"kind":"ExecCredential","apiVersion":")" + v1 + R"(","status":)" + status + "}";
  };
  CHECK(parse_exec_credential(answer(R"({"token":"t","clientKeyData":null})"), v1)->token == "t");
  for (const std::string& text :
       {std::string("secret"),
        std::string("[]"),
        std::string(R"({"kind":"Secret"})"),
        R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1",)"
        R"("status":{"token":"secret"}})" +
            std::string(),
        answer("null"),
        answer("{}"),
        answer(R"({"token":7})"),
        answer(R"({"token":"secret","clientKeyData":"secret"})"),
        answer(R"({"token":"secret","expirationTimestamp":"secret"})")}) {
    CAPTURE(text);
    const auto got = parse_exec_credential(text, v1);
    REQUIRE_FALSE(got);
    CHECK(got.error().what.find("secret") == std::string::npos);
  }
}

TEST_CASE("an exec plugin that fails is an error without its output, and is tried again") {
  Plugin plugin(R"({"token":"secret"})");
  plugin.dir_.write("fail", "");
  const auto opened = Credentials::open(plugin.access_, plugin.time_.source());
  REQUIRE(opened);
  const std::string got = authorization(**opened);
  CHECK(got.starts_with("error: exec plugin"));
  CHECK(got.find("secret") == std::string::npos);
  std::filesystem::remove(plugin.dir_.path("fail"));
  CHECK(authorization(**opened) == "Bearer secret");

  plugin.access_.exec->command = "/nonexistent/tool";
  plugin.access_.exec->install_hint = "install it";
  const auto missing = Credentials::open(plugin.access_, plugin.time_.source());
  CHECK(authorization(**missing).ends_with("No such file or directory; install it"));
}

TEST_CASE("a token that has expired already is used once, not asked for in a loop") {
  Plugin plugin(R"({"token":"old","expirationTimestamp":"2001-01-01T00:00:00Z"})");
  const auto opened = Credentials::open(plugin.access_, plugin.time_.source());
  CHECK(authorization(**opened) == "Bearer old");
  CHECK(plugin.runs() == 1);
}

TEST_CASE(
    "threads share one run of the plugin, and whoever is asked to stop does not wait for it") {
  Plugin plugin(R"({"token":"t"})");
  plugin.dir_.write(
      "plugin",
      "#!/bin/sh\ncd " + plugin.dir_.path() +
          "\nprintf x >> runs\nwhile [ ! -e go ]; do sleep 0.01; done\ncat status\n",
      true);
  const auto opened = Credentials::open(plugin.access_);
  Result<std::shared_ptr<const Identity>> got_first;
  Result<std::shared_ptr<const Identity>> got_stopped;
  Result<std::shared_ptr<const Identity>> got_second;
  std::thread first([&] { got_first = (*opened)->current(-1); });
  while (plugin.runs() == 0) {
    std::this_thread::yield();
  }
  WakeFd stop;
  std::thread stopped([&] { got_stopped = (*opened)->current(stop.fd()); });
  stop.ring();
  stopped.join();
  std::thread second([&] { got_second = (*opened)->current(-1); });
  plugin.dir_.write("go", "");
  first.join();
  second.join();
  CHECK(got_first);
  CHECK(got_second);
  REQUIRE_FALSE(got_stopped);
  CHECK(got_stopped.error().sys_errno == ECANCELED);
  CHECK(plugin.runs() == 1);
}

}  // namespace
}  // namespace shunt::apiserver
