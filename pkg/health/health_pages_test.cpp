#include "health/health_pages.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::health {
namespace {

http::Response get(const http::Service& pages, const std::string& path) {
  http::Request request;
  request.method = "GET";
  request.path = path;
  return pages.handler(request);
}

TEST_CASE("three pages and nothing else") {
  HealthState state(Millis(1000));
  Readiness readiness;
  const http::Service pages = health_pages(state, [&] { return readiness; });
  CHECK(get(pages, "/healthz").status == 503);  // the Node is not known
  CHECK(get(pages, "/livez").status == 200);
  CHECK(get(pages, "/readyz").status == 503);
  CHECK(get(pages, "/").status == 404);
  CHECK(get(pages, "/metrics").status == 404);
  for (const char* path : {"/healthz", "/livez", "/readyz"}) {
    const http::Response page = get(pages, path);
    CHECK(page.content_type == "application/json");
    CHECK(page.headers == http::Headers{{"X-Content-Type-Options", "nosniff"}});
  }
  CHECK(state.healthz_answers() == ProxyHealth::Counters{{503, 2}});
  CHECK(state.livez_answers() == ProxyHealth::Counters{{200, 2}});
}

TEST_CASE("pages follow the state") {
  HealthState state(Millis(1000));
  const http::Service pages = health_pages(state, [] { return Readiness{}; });
  const kube::Node node;
  state.set_node(&node);
  CHECK(get(pages, "/healthz").status == 200);
  const Instant now = Instant::now();
  state.updated(net::Family::IPv4, now);
  state.queued(net::Family::IPv4, {now.steady - Millis(2000), now.wall});
  CHECK(get(pages, "/livez").status == 503);
  CHECK_FALSE(state.healthy());
  state.updated(net::Family::IPv4);
  CHECK(get(pages, "/livez").status == 200);
}

}  // namespace
}  // namespace shunt::health
