// The server of healthzBindAddress: /healthz and /livez as kube-proxy has them, and our /readyz.
#pragma once

#include <functional>
#include <memory>

#include "health/health_state.h"
#include "health/readiness.h"
#include "http/server.h"

namespace shunt::health {

// `readiness` is asked on the server's thread, once a request; it must not wait. Both outlive the
// server.
http::Service health_pages(HealthState& state, std::function<Readiness()> readiness);

}  // namespace shunt::health
