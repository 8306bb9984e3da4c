#include "health/health_pages.h"

#include <utility>

namespace shunt::health {

http::Service health_pages(HealthState& state, std::function<Readiness()> readiness) {
  return {[&state, readiness = std::move(readiness)](const http::Request& request) {
    if (request.path == "/healthz") {
      return state.healthz();
    }
    if (request.path == "/livez") {
      return state.livez();
    }
    if (request.path == "/readyz") {
      ReadyAnswer ready = answer(readiness());
      return http::Response{
          ready.status,
          "application/json",
          std::move(ready.body),
          {{"X-Content-Type-Options", "nosniff"}}};
    }
    return http::not_found();
  }};
}

}  // namespace shunt::health
