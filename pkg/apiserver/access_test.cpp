#include "apiserver/access.h"

#include <catch2/catch_test_macros.hpp>

#include "apiserver/base64.h"
#include "base/testing/temp_dir.h"

namespace shunt::apiserver {
namespace {

std::string url(std::string_view text) {
  const auto parsed = parse_server_url(text);
  return parsed ? to_string(*parsed) : "refused";
}

TEST_CASE("server URLs are taken apart") {
  CHECK(url("https://10.0.0.1:6443") == "https://10.0.0.1:6443");
  CHECK(url("https://api.example") == "https://api.example:443");
  CHECK(url("https://api.example/") == "https://api.example:443");
  CHECK(url("https://api.example:1/k8s/c-1//") == "https://api.example:1/k8s/c-1");
  CHECK(url("https://[fd00::a]:6443") == "https://[fd00::a]:6443");
  CHECK(url("https://[fd00::a]") == "https://[fd00::a]:443");
  CHECK(url("http://127.0.0.1:8080") == "http://127.0.0.1:8080");
  CHECK(url("http://[::1]:8080") == "http://[::1]:8080");
  CHECK(parse_server_url("https://10.0.0.1:6443")->ip.has_value());
  CHECK_FALSE(parse_server_url("https://api.example")->ip.has_value());
}

TEST_CASE("other URLs are refused, without being repeated") {
  for (const char* bad :
       {"",
        "api.example:6443",
        "ftp://api.example",
        "https://",
        "https://:6443",
        "https://user:secret@api.example",
        "https://api.example:0",
        "https://api.example:65536",
        "https://api.example:",
        "https://api.example:6443x",
        "https://fd00::a:6443",
        "https://[10.0.0.1]:6443",
        "https://[fd00::a",
        "https://[fd00::a]6443",
        "https://api example",
        "https://api.example/a b",
        "https://api.example/a\r\nHost: x",
        "https://api.example?secret",
        "https://api.example#secret",
        "http://10.0.0.1:8080",
        "http://localhost:8080",
        "http://api.example"}) {
    CAPTURE(bad);
    const auto parsed = parse_server_url(bad);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().what.find("secret") == std::string::npos);
  }
}

TEST_CASE("base64 goes both ways") {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\x00z"}) {
    CHECK(base64_decode(base64_encode(text)) == text);
  }
  CHECK(base64_encode("light work.") == "bGlnaHQgd29yay4=");
  CHECK(base64_decode("bGln\naHQg\r\nd29yay4=") == "light work.");
  for (const char* bad : {"a", "ab", "abc", "ab=c", "a===", "====", "abcd====", "ab c", "ab*="}) {
    CAPTURE(bad);
    CHECK_FALSE(base64_decode(bad));
  }
}

// Base64 of "PEM".
constexpr char kPem[] = "UEVN";

std::string config(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
         "contexts:\n- name: here\n  context: {cluster: c, user: u}\n"
         "clusters:\n- name: other\n  cluster: {server: 'https://other'}\n"
         "- name: c\n  cluster: {" +
         cluster + "}\nusers:\n- name: u\n  user: {" + user + "}\n";
}
const std::string& server() {
  static const std::string text = "server: 'https://10.0.0.1:6443'";
  return text;
}
std::string exec(const std::string& fields) {
  return "exec: {apiVersion: client.authentication.k8s.io/v1, command: tool, "
         "interactiveMode: Never" +
         (fields.empty() ? "" : ", " + fields) + "}";
}

TEST_CASE("a kubeconfig's fields land where they belong") {
  const auto got = parse_kubeconfig(
      config(
          server() + ", certificate-authority: pki/ca.crt, tls-server-name: api.example, "
                     "disable-compression: true",
          "client-certificate: /abs/client.crt, client-key: client.key, token: t, "
          "tokenFile: secrets/token, as: alice, as-uid: '7', as-groups: [a, b], "
          "as-user-extra: {scopes/x: [one, two]}"),
      "/etc/kube",
      "");
  REQUIRE(got);
  CHECK(to_string(got->server) == "https://10.0.0.1:6443");
  CHECK(got->tls_server_name == "api.example");
  CHECK(got->ca.file == "/etc/kube/pki/ca.crt");
  CHECK(got->certificate.file == "/abs/client.crt");
  CHECK(got->key.file == "/etc/kube/client.key");
  CHECK(got->token == "t");
  CHECK(got->token_file == "/etc/kube/secrets/token");
  CHECK(
      got->impersonation == Headers{
                                {"Impersonate-User", "alice"},
                                {"Impersonate-Uid", "7"},
                                {"Impersonate-Group", "a"},
                                {"Impersonate-Group", "b"},
                                {"Impersonate-Extra-scopes%2Fx", "one"},
                                {"Impersonate-Extra-scopes%2Fx", "two"}});
  CHECK_FALSE(got->exec);
}

TEST_CASE("a kubeconfig may hold its data inline, and be JSON") {
  const std::string pem = kPem;
  const auto got = parse_kubeconfig(
      R"({"current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
          "clusters":[{"name":"c","cluster":{"server":"https://api.example","certificate-authority-data":")" +
          pem + R"("}}],"users":[{"name":"u","user":{"client-certificate-data":")" + pem +
          R"(","client-key-data":")" + pem + R"("}}]})",
      "/",
      "");
  REQUIRE(got);
  CHECK(got->ca.data == "PEM");
  CHECK(got->certificate.data == "PEM");
  CHECK(got->key.data == "PEM");
}

TEST_CASE("an exec plugin is read with all its fields") {
  const auto got = parse_kubeconfig(
      config(
          server() +
              ", extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: "
              "x, n: 3, quoted: '3', list: [true, null]}}]",
          exec("args: [get, --quiet], env: [{name: A, value: b}], provideClusterInfo: true, "
               "installHint: install it")),
      "/etc/kube",
      "");
  REQUIRE(got);
  REQUIRE(got->exec);
  CHECK(got->exec->command == "tool");
  CHECK(got->exec->args == std::vector<std::string>{"get", "--quiet"});
  CHECK(got->exec->env == Headers{{"A", "b"}});
  CHECK(got->exec->install_hint == "install it");
  CHECK(got->exec->provide_cluster_info);
  CHECK(
      got->exec->cluster_config_json ==
      R"({"audience":"x","list":[true,null],"n":3,"quoted":"3"})");

  const auto relative = parse_kubeconfig(
      config(
          server(), "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: bin/tool}"),
      "/etc/kube",
      "");
  REQUIRE(relative);
  CHECK(relative->exec->command == "/etc/kube/bin/tool");
}

TEST_CASE("a master takes the place of the server and its name") {
  const auto got = parse_kubeconfig(
      config(server() + ", tls-server-name: x, certificate-authority: ca", "token: t"),
      "/d",
      "https://[fd00::1]:6443");
  REQUIRE(got);
  CHECK(to_string(got->server) == "https://[fd00::1]:6443");
  CHECK(got->tls_server_name.empty());
  CHECK(got->ca.file == "/d/ca");
  CHECK(got->token == "t");
  CHECK(kubeconfig_access("", "https://api.example"));
  CHECK_FALSE(kubeconfig_access("", "http://api.example"));
}

TEST_CASE("what a kubeconfig may not say is refused, naming the place and no secret") {
  struct Case {
    const char* name;
    std::string text;
    const char* why;
  };
  const std::string pem = kPem;
  const std::vector<Case> cases = {
      {"not YAML", "users: [secret", "not YAML near line"},
      {"not a mapping", "secret", "kubeconfig must be a mapping"},
      {"empty", "", "no current-context"},
      {"no such context", "current-context: gone", "context \"gone\" is named but not defined"},
      {"no such cluster",
       "current-context: x\ncontexts: [{name: x, context: {cluster: gone}}]",
       "cluster \"gone\" is named but not defined"},
      {"no such user",
       "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: gone}}]\n"
       "clusters: [{name: c, cluster: {" +
           server() + "}}]",
       "user \"gone\" is named but not defined"},
      {"no server", config("", ""), "has no server"},
      {"bad server", config("server: 'ftp://secret'", ""), "is not an https URL"},
      {"plain http", config("server: 'http://10.0.0.1'", ""), "is plain http"},
      {"insecure",
       config(server() + ", insecure-skip-tls-verify: true", ""),
       "the server is always verified"},
      {"proxy", config(server() + ", proxy-url: 'http://secret'", ""), "proxies are not supported"},
      {"two CAs",
       config(server() + ", certificate-authority: f, certificate-authority-data: " + pem, ""),
       "both certificate-authority and certificate-authority-data"},
      {"CA not base64",
       config(server() + ", certificate-authority-data: '*secret*'", ""),
       "certificate-authority-data is not base64"},
      {"two certificates",
       config(
           server(), "client-certificate: f, client-certificate-data: " + pem + ", client-key: f"),
       "both client-certificate and client-certificate-data"},
      {"two keys",
       config(server(), "client-certificate: f, client-key-data: " + pem + ", client-key: f"),
       "both client-key and client-key-data"},
      {"certificate without key",
       config(server(), "client-certificate: f"),
       "both a client certificate and its key"},
      {"key without certificate",
       config(server(), "client-key-data: " + pem),
       "both a client certificate and its key"},
      {"token and password",
       config(server(), "token: secret, username: u, password: secret"),
       "both a token and a user name"},
      {"token file and password",
       config(server(), "tokenFile: f, password: secret"),
       "both a token and a user name"},
      {"token is a list", config(server(), "token: [secret]"), "token must be a string"},
      {"groups without as", config(server(), "as-groups: [a]"), "without as"},
      {"groups no list", config(server(), "as: a, as-groups: a"), "as-groups must be a list"},
      {"auth-provider", config(server(), "auth-provider: {name: gcp}"), "uses auth-provider"},
      {"exec and auth-provider",
       config(server(), exec("") + ", auth-provider: {name: gcp}"),
       "both exec and auth-provider"},
      {"exec without version", config(server(), "exec: {command: tool}"), "apiVersion must be"},
      {"exec of an old version",
       config(server(), "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: t}"),
       "apiVersion must be"},
      {"exec without command",
       config(server(), "exec: {apiVersion: client.authentication.k8s.io/v1}"),
       "command is missing"},
      {"exec v1 without mode",
       config(server(), "exec: {apiVersion: client.authentication.k8s.io/v1, command: t}"),
       "interactiveMode must be"},
      {"exec that needs a terminal",
       config(
           server(),
           "exec: {apiVersion: client.authentication.k8s.io/v1, command: t, "
           "interactiveMode: Always}"),
       "no terminal"},
      {"exec variable without a name",
       config(server(), exec("env: [{value: secret}]")),
       "entry without a name"},
      {"exec flag", config(server(), exec("provideClusterInfo: perhaps")), "true or false"}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto got = parse_kubeconfig(c.text, "/d", "");
      REQUIRE_FALSE(got);
      CAPTURE(got.error().what);
      CHECK(got.error().code == Errc::Invalid);
      CHECK(got.error().what.find(c.why) != std::string::npos);
      CHECK(got.error().what.find("secret") == std::string::npos);
    }
  }
}

TEST_CASE("a kubeconfig that cannot be read names its path") {
  const auto got = kubeconfig_access("/nonexistent/config", "");
  REQUIRE_FALSE(got);
  CHECK(got.error().what.find("/nonexistent/config") != std::string::npos);
}

TEST_CASE("relative paths start at the kubeconfig's directory") {
  shunt::testing::TempDir dir;
  const auto got = kubeconfig_access(
      dir.write("config", config(server() + ", certificate-authority: ca.crt", "")), "");
  REQUIRE(got);
  CHECK(got->ca.file == dir.path("ca.crt"));
}

TEST_CASE("in a cluster, the environment names the server") {
  PodMounts mounts{.host = "10.96.0.1", .port = "443", .directory = "/m"};
  const auto got = in_cluster_access(mounts);
  REQUIRE(got);
  CHECK(to_string(got->server) == "https://10.96.0.1:443");
  CHECK(got->ca.file == "/m/ca.crt");
  CHECK(got->token_file == "/m/token");
  mounts.host = "fd00::1";
  CHECK(to_string(in_cluster_access(mounts)->server) == "https://[fd00::1]:443");
  mounts.port = "";
  CHECK_FALSE(in_cluster_access(mounts));
  mounts = {.host = "", .port = "443", .directory = "/m"};
  CHECK_FALSE(in_cluster_access(mounts));
}

TEST_CASE("HTTPS_PROXY matters unless NO_PROXY covers the server") {
  struct Case {
    const char* server;
    const char* no_proxy;
    bool wanted;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"https://10.0.0.1:6443", "", true},
           {"https://10.0.0.1:6443", "10.0.0.1", false},
           {"https://10.0.0.1:6443", "10.0.0.1:6443", false},
           {"https://10.0.0.1:6443", "10.0.0.1:443", true},
           {"https://10.0.0.1:6443", "example.com, 10.0.0.0/8", false},
           {"https://10.0.0.1:6443", "11.0.0.0/8", true},
           {"https://[fd00::1]:6443", "fd00::/64", false},
           {"https://10.0.0.1:6443", "*", false},
           {"https://api.example.com", "example.com", false},
           {"https://api.example.com", ".example.com", false},
           {"https://api.example.com", "*.example.com", false},
           {"https://example.com", ".example.com", true},
           {"https://badexample.com", "example.com", true},
           {"https://api.example.com", "api.example.com:443", false},
           {"https://api.example.com", "api.example.com:444", true},
           {"https://127.0.0.1:6443", "", false},
           {"https://localhost:6443", "", false}}) {
    CAPTURE(c.server, c.no_proxy);
    CHECK(wants_proxy({"http://proxy", c.no_proxy}, *parse_server_url(c.server)) == c.wanted);
    CHECK_FALSE(wants_proxy({"", c.no_proxy}, *parse_server_url(c.server)));
  }
}

}  // namespace
}  // namespace shunt::apiserver
