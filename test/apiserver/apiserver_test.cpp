// Lists, objects and identities: what the server answers to a single request.
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "test/apiserver/test_client.h"

namespace shunt::test_api {
namespace {

constexpr const char* kServices = "/api/v1/services";
constexpr const char* kShop = "/api/v1/namespaces/shop/services";
constexpr const char* kMergePatch = "application/merge-patch+json";

// Cuts what follows `key`, up to the next character of `ends`, wherever it stands. (std::regex
// makes g++ 12 warn of its own insides under sanitizers.)
std::string blanked(std::string text, const std::string& key, const char* ends) {
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) {
    at += key.size();
    text.erase(at, text.find_first_of(ends, at) - at);
  }
  return text;
}

// Versions and continue tokens are the server's own business.
std::string without_versions(const std::string& text) {
  return blanked(blanked(text, R"("resourceVersion": ")", "\""), R"("continue": ")", "\"");
}

std::vector<std::string> names(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list["items"]) {
    out.push_back(text_at(item["metadata"], "name"));
  }
  return out;
}

using Names = std::vector<std::string>;

std::string labelled(const std::string& key, const std::string& value) {
  return "  labels:\n    " + key + ": \"" + value + "\"\n";
}

}  // namespace

TEST_CASE("lists are the recorded bytes, versions aside") {
  struct Case {
    const char* recording;
    const char* target;
  };
  const Case cases[] = {
      {"list-services.json", "/api/v1/services?pretty=true"},
      {"list-services-noheadless.json",
       "/api/v1/services?pretty=true&fieldSelector=spec.clusterIP!%3DNone"},
      {"list-endpointslices.json", "/apis/discovery.k8s.io/v1/endpointslices?pretty=true"},
      {"list-node.json", "/api/v1/nodes?pretty=true&fieldSelector=metadata.name=node1"},
      {"list-servicecidrs.json", "/apis/networking.k8s.io/v1/servicecidrs?pretty=true"}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.recording) {
      TestServer server;
      server.apply(recording(std::string(c.recording) + ".body"));
      const Reply reply = server.get(c.target);
      CHECK(reply.code == 200);
      CHECK(
          without_versions(reply.body) ==
          without_versions(recording(std::string(c.recording) + ".body")));
      const std::string head = recording(std::string(c.recording) + ".headers");
      for (const auto& [name, value] : reply.headers) {
        CHECK(head.find(name + ": ") != std::string::npos);
      }
    }
  }
}

TEST_CASE("pages are the recorded pages") {
  TestServer server;
  server.apply(recording("list-services.json.body"));
  const std::string query = "/api/v1/services?pretty=true&limit=3&labelSelector=!x";
  const Reply first = server.get(query);
  CHECK(
      without_versions(first.body) == without_versions(recording("list-services-page1.json.body")));
  const std::string token = text_at(first.json()["metadata"], "continue");
  server.apply(service("changed-between-pages"));
  const Reply second = server.get(query + "&continue=" + token);
  CHECK(
      without_versions(second.body) ==
      without_versions(recording("list-services-page2.json.body")));
  CHECK(
      second.json()["metadata"]["resourceVersion"] == first.json()["metadata"]["resourceVersion"]);
  const Reply last =
      server.get(query + "&continue=" + text_at(second.json()["metadata"], "continue"));
  CHECK(names(last.json()) == Names{"web-dual"});
  CHECK_FALSE(last.json()["metadata"].contains("continue"));

  SECTION("a token outlives neither the log nor a resourceVersion beside it") {
    CHECK(server.get(query + "&resourceVersion=3&continue=" + token).code == 400);
    server.call("POST", "/_test/forget");
    const Reply expired = server.get(query + "&continue=" + token);
    CHECK(expired.code == 410);
    CHECK(text_at(expired.json(), "reason") == "Expired");
  }
  SECTION("without selectors the rest is counted; version 0 is never paged") {
    const Json page = server.get("/api/v1/services?limit=3").json();
    CHECK(page["metadata"]["remainingItemCount"] == 5);
    CHECK(server.get("/api/v1/services?limit=3&resourceVersion=0").json()["items"].size() == 8);
  }
}

TEST_CASE("large lists are compressed for those who accept it") {
  TestServer server;
  std::string manifests;
  for (int i = 0; i < 600; ++i) {
    manifests += service("s" + std::to_string(i));
  }
  server.apply(manifests);
  const Headers gzip{{"Accept-Encoding", "gzip"}};
  const Reply small = server.call("GET", "/api/v1/services?limit=10", "", gzip);
  CHECK_FALSE(small.headers.contains("Content-Encoding"));
  Reply large = server.call("GET", kServices, "", gzip);
  CHECK(large.headers["Content-Encoding"] == "gzip");
  CHECK(large.json()["items"].size() == 600);
  const Reply plain = server.call("GET", kServices, "", {{"Accept-Encoding", "identity"}});
  CHECK_FALSE(plain.headers.contains("Content-Encoding"));
  CHECK(plain.body == large.body);
}

TEST_CASE("selectors choose") {
  TestServer server;
  server.apply(
      service("plain") + service("red", labelled("color", "red")) +
      service("blue", labelled("color", "blue")) +
      "---\nkind: Service\nmetadata: {name: headless, namespace: other}\n"
      "spec: {clusterIP: None}\n");
  struct Case {
    const char* query;
    Names want;
  };
  const Case cases[] = {
      {"labelSelector=color", {"blue", "red"}},
      {"labelSelector=!color", {"headless", "plain"}},
      {"labelSelector=color%3Dred", {"red"}},
      {"labelSelector=color%3D%3Dred", {"red"}},
      {"labelSelector=color!%3Dred", {"headless", "blue", "plain"}},
      {"labelSelector=color%20in%20(red,blue)", {"blue", "red"}},
      {"labelSelector=color%20notin%20(red),color", {"blue"}},
      {"fieldSelector=spec.clusterIP!%3DNone", {"blue", "plain", "red"}},
      {"fieldSelector=metadata.name%3Dplain", {"plain"}},
      {"fieldSelector=metadata.namespace%3Dother", {"headless"}},
      {"fieldSelector=spec.type%3DClusterIP&labelSelector=color%3Dblue", {"blue"}}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.query) {
      CHECK(names(server.get(std::string(kServices) + "?" + c.query).json()) == c.want);
    }
  }
  CHECK(names(server.get(kShop).json()) == Names{"blue", "plain", "red"});
  CHECK(server.get("/api/v1/services?fieldSelector=spec.nonsense%3D1").code == 400);
  CHECK(server.get("/api/v1/services?labelSelector=a%20b").code == 400);
}

TEST_CASE("versions of lists") {
  TestServer server;
  server.apply(service("first"));
  const auto at = text_at(server.get(kServices).json()["metadata"], "resourceVersion");
  server.apply(service("second"));
  CHECK(server.get("/api/v1/services?resourceVersion=" + at).json()["items"].size() == 2);
  CHECK(
      names(
          server.get("/api/v1/services?resourceVersionMatch=Exact&resourceVersion=" + at).json()) ==
      Names{"first"});
  CHECK(server.get("/api/v1/services?resourceVersionMatch=Exact").code == 422);
  CHECK(server.get("/api/v1/services?resourceVersionMatch=Exact&resourceVersion=0").code == 422);
  CHECK(server.get("/api/v1/services?sendInitialEvents=true").code == 422);

  const Reply future = server.get("/api/v1/services?pretty=1&resourceVersion=99999999");
  CHECK(future.code == 504);
  CHECK(future.headers.at("Retry-After") == "1");
  CHECK(
      blanked(future.body, "current: ", "\"") ==
      blanked(recording("error-future-rv.json.body"), "current: ", "\""));
}

TEST_CASE("writes keep the rules of the API") {
  TestServer server;
  const std::string body =
      R"({"kind":"Service","apiVersion":"v1","metadata":{"name":"web"},)"
      R"("spec":{"type":"NodePort","clusterIP":"fd00::1","ports":[{"port":80}],)"
      R"("sessionAffinity":"ClientIP"}})";
  const Reply created = server.call("POST", kShop, body);
  REQUIRE(created.code == 201);
  const Json spec = created.json()["spec"];
  CHECK(
      spec.dump() ==
      R"({"ports":[{"protocol":"TCP","port":80,"targetPort":80}],"clusterIP":"fd00::1",)"
      R"("clusterIPs":["fd00::1"],"type":"NodePort","sessionAffinity":"ClientIP",)"
      R"("externalTrafficPolicy":"Cluster","sessionAffinityConfig":{"clientIP":)"
      R"({"timeoutSeconds":10800}},"ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack",)"
      R"("internalTrafficPolicy":"Cluster"})");
  CHECK(server.call("POST", kShop, body).json()["reason"] == "AlreadyExists");
  CHECK(
      server.get(std::string(kShop) + "/nowhere").json()["message"] ==
      "services \"nowhere\" not found");

  const std::string web = std::string(kShop) + "/web";
  const Headers merge{{"Content-Type", kMergePatch}};
  const Reply patched = server.call("PATCH", web, R"({"metadata":{"labels":{"a":"b"}}})", merge);
  CHECK(patched.json()["metadata"]["labels"]["a"] == "b");
  CHECK(patched.json()["metadata"]["uid"] == created.json()["metadata"]["uid"]);
  CHECK_FALSE(server.call("PATCH", web, R"({"metadata":{"labels":null}})", merge)
                  .json()["metadata"]
                  .contains("labels"));
  CHECK(server.call("PATCH", web, "{}", {{"Content-Type", "text/plain"}}).code == 415);

  SECTION("an outdated replacement is a conflict, an equal one no change") {
    const Reply current = server.get(web);
    CHECK(server.call("PUT", web, created.body).json()["reason"] == "Conflict");
    const Reply same = server.call("PUT", web, current.body);
    CHECK(same.code == 200);
    CHECK(same.body == current.body);
  }
  SECTION("a deleted object is gone") {
    CHECK(server.call("DELETE", web).json()["status"] == "Success");
    CHECK(server.call("DELETE", web).code == 404);
    CHECK(server.call("PUT", web, body).code == 404);
    CHECK(server.call("PUT", web + "?upsert=true", body).code == 201);
  }
  SECTION("raw objects are stored as given") {
    server.call("PUT", web + "?raw=true", R"({"spec":{"zzz":1,"ports":[{"port":1}]}})");
    CHECK(server.get(web).json()["spec"].dump() == R"({"zzz":1,"ports":[{"port":1}]})");
  }
  SECTION("bulk deletion counts what was there") {
    const Reply reply = server.call(
        "POST",
        "/_test/delete",
        R"([{"kind":"Service","namespace":"shop","name":"web"},)"
        R"({"kind":"Node","name":"none"}])");
    CHECK(reply.json()["deleted"] == 1);
  }
}

TEST_CASE("identities") {
  TestServer server([](ServerOptions& options) {
    options.auth.tokens = {"proxy-token"};
    options.auth.admin_tokens = {"admin-token"};
    options.auth.rbac = true;
  });
  const std::string client = server.dir() + "/pki/client";
  const std::string admin = server.dir() + "/pki/admin";
  const Headers pretty{{"User-Agent", "curl/8"}};
  const auto bearer = [](const char* token) {
    return Headers{{"User-Agent", "curl/8"}, {"Authorization", std::string("Bearer ") + token}};
  };

  CHECK(server.tls_get(kServices, client).code == 200);
  CHECK(server.tls_get(kServices, "", bearer("proxy-token")).code == 200);
  CHECK(server.tls_get("/api/v1/events", client).code == 403);
  CHECK(server.tls_get("/api/v1/events", admin).code == 200);
  CHECK(server.tls_get("/api/v1/events", "", bearer("admin-token")).code == 200);
  CHECK(
      server.tls_get("/api/v1/secrets", client, pretty).body ==
      recording("error-403-secrets.json.body"));
  CHECK(server.tls_get(kServices, "", pretty).body == recording("error-403.json.body"));
  const Reply unknown = server.tls_get(kServices, "", bearer("wrong"));
  CHECK(unknown.code == 401);
  CHECK(unknown.body == recording("error-401.json.body"));
  CHECK_FALSE(unknown.headers.contains("X-Kubernetes-Pf-Flowschema-Uid"));
  CHECK(
      server.tls_get("/apis/discovery.k8s.io/v9/endpointslices", admin, pretty).body ==
      recording("error-404.json.body"));

  SECTION("a certificate of another authority is no identity") {
    TestServer stranger;
    CHECK(server.tls_get(kServices, stranger.dir() + "/pki/client").code == 401);
  }
}

TEST_CASE("tokens rotate through the token file") {
  TestServer server;
  const std::string path = server.dir() + "/pki/token";
  std::string token;
  std::getline(std::ifstream(path) >> std::ws, token);
  CHECK(server.tls_get(kServices, "", {{"Authorization", "Bearer " + token}}).code == 200);
  std::ofstream(path) << "new-token\n";
  CHECK(server.tls_get(kServices, "", {{"Authorization", "Bearer " + token}}).code == 401);
  CHECK(server.tls_get(kServices, "", {{"Authorization", "Bearer new-token"}}).code == 200);
}

TEST_CASE("manifests keep the types that YAML gives") {
  TestServer server;
  server.apply(
      "kind: List\nitems:\n- kind: EndpointSlice\n  metadata: {name: a, namespace: shop,\n"
      "    labels: {quoted: \"80\"}}\n  addressType: IPv4\n  ports: [{port: 80, name: \"1\"}]\n"
      "  endpoints:\n  - addresses: [10.0.0.1]\n    conditions: {ready: true}\n");
  const Json slice =
      server.get("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/a").json();
  CHECK(slice["ports"].dump() == R"([{"name":"1","protocol":"TCP","port":80}])");
  CHECK(slice["endpoints"][0]["conditions"]["ready"] == true);
  CHECK(slice["metadata"]["labels"]["quoted"] == "80");
  CHECK(slice["metadata"]["generation"] == 1);
}

}  // namespace shunt::test_api
