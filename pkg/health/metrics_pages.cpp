#include "health/metrics_pages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "health/json_text.h"

namespace shunt::health {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kMetrics[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kForPeople[] =
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only.\n";

http::Response page(const char* content_type, std::string body) {
  return {200, content_type, std::move(body), {{"X-Content-Type-Options", "nosniff"}}};
}

// Text is for people and the default; JSON for who names it.
bool asks_for_json(const http::Request& request) {
  return request.header("accept").find("application/json") != std::string_view::npos;
}

std::string start_of_document(const char* kind) {
  return "{\"kind\":" + json_string(kind) +
         ",\"apiVersion\":\"config.k8s.io/v1beta1\",\"metadata\":{\"name\":\"kube-proxy\"}";
}

std::string utc(std::chrono::system_clock::time_point time, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  (void)::gmtime_r(&seconds, &parts);  // fails only beyond the year 2^31
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

class Pages {
 public:
  explicit Pages(MetricsPages pages) : pages_(std::move(pages)) {}

  http::Response answer(const http::Request& request) const {
    if (request.path == "/debug/flags/v" && pages_.set_verbosity) {
      return request.method == "PUT" ? set_verbosity(request.body)
                                     : http::method_not_allowed("PUT");
    }
    if (request.method != "GET" && request.method != "HEAD") {
      return http::method_not_allowed("GET, HEAD");
    }
    if (request.path == "/metrics" && pages_.metrics) {
      return {200, kMetrics, pages_.metrics()};
    }
    if (request.path == "/metrics/slis" && pages_.slis) {
      return {200, kMetrics, pages_.slis()};
    }
    if (request.path == "/healthz" || request.path == "/healthz/ping") {
      ++*pages_.pings;
      return page(kText, "ok");
    }
    if (request.path == "/proxyMode") {
      return page(kText, pages_.proxy_mode());
    }
    if (request.path == "/configz" && pages_.config) {
      return page(kJson, pages_.config());
    }
    if (request.path == "/flagz" && pages_.flags) {
      return flagz(asks_for_json(request));
    }
    if (request.path == "/statusz") {
      return statusz(asks_for_json(request));
    }
    return http::not_found();
  }

 private:
  http::Response set_verbosity(const std::string& body) const {
    const std::size_t end = body.find_last_not_of(" \r\n");
    const char* const last = body.data() + (end == std::string::npos ? 0 : end + 1);
    int level = 0;
    const auto [stop, error] = std::from_chars(body.data(), last, level);
    if (error != std::errc{} || stop != last) {
      return {400, kText, "the body is no number\n"};
    }
    if (const auto set = pages_.set_verbosity(level); !set) {
      return {400, kText, set.error().what + "\n"};
    }
    return page(kText, "successfully set klog.logging.verbosity to " + std::to_string(level));
  }

  http::Response flagz(bool json) const {
    std::string body = json ? start_of_document("Flagz") + ",\"flags\":{"
                            : std::string("\nkube-shunt flags\n") + kForPeople + "\n";
    bool first = true;
    for (const auto& [name, value] : pages_.flags()) {
      if (json) {
        body += first ? "" : ",";
        body += json_string(name);
        body += ":";
        body += json_string(value);
      } else {
        body += name;
        body += "=";
        body += value;
        body += "\n";
      }
      first = false;
    }
    body += json ? "}}" : "";
    return page(json ? kJson : kText, std::move(body));
  }

  http::Response statusz(bool json) const {
    const auto up = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::system_clock::now() - pages_.started);
    const std::string uptime = std::to_string(std::max<std::int64_t>(0, up.count()));
    if (json) {
      return page(
          kJson,
          start_of_document("Statusz") +
              ",\"startTime\":" + json_string(utc(pages_.started, "%Y-%m-%dT%H:%M:%SZ")) +
              ",\"uptimeSeconds\":" + uptime + ",\"binaryVersion\":" + json_string(pages_.version) +
              ",\"paths\":" + json_paths() + "}");
    }
    return page(
        kText,
        std::string("\nkube-shunt statusz\n") + kForPeople +
            "\nStarted: " + utc(pages_.started, "%a %b %e %H:%M:%S UTC %Y") + "\nUp: " + uptime +
            " s\nBinary version: " + pages_.version + "\nPaths: " + list_of_paths() + "\n");
  }

  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    const auto add = [&](const char* path, bool is_there) {
      if (is_there) {
        out.emplace_back(path);
      }
    };
    add("/configz", pages_.config != nullptr);
    add("/debug/flags/v", pages_.set_verbosity != nullptr);
    add("/flagz", pages_.flags != nullptr);
    add("/healthz", true);
    add("/metrics", pages_.metrics != nullptr);
    add("/metrics/slis", pages_.slis != nullptr);
    add("/proxyMode", true);
    add("/statusz", true);
    return out;
  }

  std::string list_of_paths() const {
    std::string out;
    for (const std::string& path : paths()) {
      out += out.empty() ? "" : " ";
      out += path;
    }
    return out;
  }

  std::string json_paths() const {
    std::string out;
    for (const std::string& path : paths()) {
      out += out.empty() ? "[" : ",";
      out += json_string(path);
    }
    return out + "]";
  }

  MetricsPages pages_;
};

}  // namespace

http::Service metrics_pages(MetricsPages pages) {
  return {
      [pages = std::make_shared<const Pages>(std::move(pages))](const http::Request& request) {
        return pages->answer(request);
      },
      true};
}

}  // namespace shunt::health
