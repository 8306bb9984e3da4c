#include "health/metrics_pages.h"

#include <catch2/catch_test_macros.hpp>

#include "http/testing/client.h"

namespace shunt::health {
namespace {

struct World {
  World() {
    pages.metrics = [] { return "a 1\n"; };
    pages.slis = [] { return "b 1\n"; };
    pages.proxy_mode = [] { return std::string("nftables"); };
    pages.config = [] { return R"({"kubeproxy.config.k8s.io":{}})"; };
    pages.flags = [] {
      return std::vector<std::pair<std::string, std::string>>{{"bind-address", "::"}, {"v", "2"}};
    };
    pages.version = "0.1.0";
    pages.set_verbosity = [this](int level) -> Result<> {
      if (level > 10) {
        return fail(Errc::Invalid, "that is too much");
      }
      verbosity = level;
      return {};
    };
  }
  http::Response ask(
      const std::string& path,
      const std::string& accept = "",
      const std::string& method = "GET",
      const std::string& body = "") const {
    return metrics_pages(pages).handler({method, path, "", {{"accept", accept}}, body});
  }

  MetricsPages pages;
  int verbosity = 0;
};

TEST_CASE("pages are kube-proxy's") {
  const World w;
  CHECK(w.ask("/metrics").body == "a 1\n");
  CHECK(w.ask("/metrics").content_type == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(w.ask("/metrics/slis").body == "b 1\n");
  CHECK(w.ask("/healthz").body == "ok");
  CHECK(w.ask("/healthz/ping").body == "ok");
  CHECK(w.pages.pings->load() == 2);
  CHECK(w.ask("/proxyMode").body == "nftables");
  CHECK(w.ask("/proxyMode").content_type == "text/plain; charset=utf-8");
  CHECK(w.ask("/configz").body == R"({"kubeproxy.config.k8s.io":{}})");
  CHECK(w.ask("/configz").content_type == "application/json");
  CHECK(w.ask("/").status == 404);
  CHECK(w.ask("/metrics/").status == 404);
  CHECK(w.ask("/debug/pprof/").status == 404);
  CHECK(w.ask("/metrics", "", "POST").status == 405);
}

TEST_CASE("flags and status are text for people, JSON for who asks") {
  const World w;
  CHECK(w.ask("/flagz").body.ends_with("\n\nbind-address=::\nv=2\n"));
  const char* accept = "application/json;as=Flagz;v=v1beta1;g=config.k8s.io";
  CHECK(
      w.ask("/flagz", accept).body ==
      R"({"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kube-proxy"},)"
      R"("flags":{"bind-address":"::","v":"2"}})");
  CHECK(w.ask("/flagz", accept).content_type == "application/json");
  CHECK(w.ask("/statusz").content_type == "text/plain; charset=utf-8");
  CHECK(w.ask("/statusz").body.find("Binary version: 0.1.0\n") != std::string::npos);
  const std::string json = w.ask("/statusz", "application/json").body;
  CHECK(json.starts_with(R"({"kind":"Statusz",)"));
  CHECK(json.find(R"("binaryVersion":"0.1.0","paths":["/configz",)") != std::string::npos);
}

TEST_CASE("the log level is put, where that is enabled") {
  World w;
  const auto put = [&](const std::string& body) {
    return w.ask("/debug/flags/v", "", "PUT", body);
  };
  CHECK(put("4\n").status == 200);
  CHECK(put("4").body == "successfully set klog.logging.verbosity to 4");
  CHECK(w.verbosity == 4);
  CHECK(put("").status == 400);
  CHECK(put("four").status == 400);
  CHECK(put("4 5").status == 400);
  CHECK(put("99999999999").status == 400);
  CHECK(put("11").body == "that is too much\n");
  CHECK(w.verbosity == 4);
  CHECK(w.ask("/debug/flags/v").status == 405);
  w.pages.set_verbosity = nullptr;
  CHECK(w.ask("/debug/flags/v").status == 404);
  CHECK(put("1").status == 405);
}

TEST_CASE("over a socket, too, bodies and answers arrive") {
  World w;
  const auto server = *http::Server::start("pages-test");
  const net::SocketAddress at = http::testing::on_loopback(http::testing::free_port());
  REQUIRE(server->listen({at}, metrics_pages(w.pages)));
  const auto put =
      http::testing::ask(at, "PUT /debug/flags/v HTTP/1.1\r\nContent-Length: 1\r\n\r\n7");
  REQUIRE(put);
  CHECK(put->status == 200);
  CHECK(w.verbosity == 7);
  const auto mode = http::testing::get(at, "/proxyMode");
  REQUIRE(mode);
  CHECK(mode->body == "nftables");
  CHECK(mode->header("X-Content-Type-Options") == "nosniff");
}

TEST_CASE("a page without its supplier is not there") {
  World w;
  w.pages.metrics = nullptr;
  w.pages.config = nullptr;
  w.pages.flags = nullptr;
  CHECK(w.ask("/metrics").status == 404);
  CHECK(w.ask("/configz").status == 404);
  CHECK(w.ask("/flagz").status == 404);
  CHECK(w.ask("/statusz").body.find("/metrics ") == std::string::npos);
}

}  // namespace
}  // namespace shunt::health
