// The server of metricsBindAddress (spec/config.md §10), made of what others supply: /metrics and
// /metrics/slis, /healthz, /proxyMode, /configz, /flagz, /statusz, and with enableProfiling the log
// level under /debug/flags/v.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/server.h"

namespace shunt::health {

// Suppliers are called on the server's thread, once a request. A page without its supplier is not
// there.
struct MetricsPages {
  std::function<std::string()> metrics = {};  // obs::Metrics::text
  std::function<std::string()> slis = {};     // obs::Metrics::slis
  std::function<std::string()> proxy_mode;
  // The document of /configz: components by name, each with its object in JSON.
  std::function<std::string()> config = {};
  std::function<std::vector<std::pair<std::string, std::string>>()> flags = {};  // name, value
  std::string version = {};
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  // With enableProfiling: the level of PUT /debug/flags/v, a number as of -v. Its error becomes
  // 400.
  std::function<Result<>(int)> set_verbosity = {};
  // How often /healthz was asked: the check `ping` of /metrics/slis.
  std::shared_ptr<std::atomic<std::uint64_t>> pings =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

http::Service metrics_pages(MetricsPages pages);

}  // namespace shunt::health
