#include "app/front.h"

#include <sys/stat.h>

#include <ctime>
#include <utility>

#include "base/log.h"
#include "health/health_pages.h"
#include "health/metrics_pages.h"

namespace shunt::app {
namespace {

using log::kv;
using obs::Seconds;

// Lists are asked for with GET, too.
const char* verb_of(std::string_view method) {
  return method == "GET" ? "GET" : method == "POST" ? "POST" : "PATCH";
}

}  // namespace

Result<std::unique_ptr<Front>> Front::start(
    const config::Options& options, CannotListen cannot_listen) {
  std::unique_ptr<Front> front(new Front(std::move(cannot_listen)));
  if (auto built = front->build(options); !built) {
    return tl::unexpected(built.error());
  }
  front->apply(options);
  return front;
}

Front::~Front() {
  status_server_.reset();
  watcher_.reset();
  services_.reset();
}

Result<> Front::build(const config::Options& options) {
  node_name_ = options.node_name;
  options_.publish(std::make_shared<const config::Options>(options));
  const std::vector<net::Family> families = families_of_host();
  health_ = std::make_unique<health::HealthState>(2 * options.sync_period);
  metrics_ =
      std::make_unique<obs::Metrics>(obs::Build{SHUNT_VERSION, "", ""}, families, suppliers());
  auto health_server = http::Server::start("health");
  if (!health_server) {
    return tl::unexpected(health_server.error());
  }
  health_server_ = std::move(*health_server);
  auto metrics_server = http::Server::start("metrics");
  if (!metrics_server) {
    return tl::unexpected(metrics_server.error());
  }
  metrics_server_ = std::move(*metrics_server);
  health::ServiceHealth::Settings settings;
  settings.node_name = options.node_name;
  settings.proxy_healthy = [this] { return health_->healthy(); };
  settings.notice = [this](const kube::Notice& notice) {
    if (const auto generation = shown()) {
      generation->tell(notice);
    }
  };
  services_ = std::make_unique<health::ServiceHealth>(
      std::move(settings), health::listeners_of(*health_server_));
  watcher_ = std::make_unique<Watcher>(families, *metrics_, *health_, *services_);
  if (!options.status_socket.empty()) {
    auto started = health::StatusServer::start(options.status_socket, [this] {
      const auto generation = shown();
      return generation ? generation->status() : std::string(R"({"synced":false,"idle":false})");
    });
    if (!started) {
      return tl::unexpected(started.error());
    }
    status_server_ = std::move(*started);
  }
  return {};
}

obs::Suppliers Front::suppliers() {
  obs::Suppliers out;
  out.healthz_answers = [this] { return health_->healthz_answers(); };
  out.livez_answers = [this] { return health_->livez_answers(); };
  out.conntrack = [this](net::Family family) {
    obs::Suppliers::Conntrack counts;
    if (const auto generation = shown()) {
      const auto now = generation->conntrack(family);
      counts = {now.passes, now.failures, now.scanned, now.deleted};
    }
    return counts;
  };
  out.state = [this](net::Family family) {
    obs::Suppliers::State state;
    if (const auto generation = shown()) {
      const auto status = generation->sync_status();
      if (const auto of = status->families.find(family); of != status->families.end()) {
        state.frontends = of->second.frontends;
        state.set_aside = of->second.set_aside;
        state.conflicts = of->second.conflicts;
      }
      state.in_sync = status->in_sync();
    }
    return state;
  };
  out.resources = [this] {
    std::vector<obs::Suppliers::Resource> resources;
    if (const auto generation = shown()) {
      for (const Sources::Resource& one : generation->sources().resources()) {
        obs::Suppliers::Resource& out_one = resources.emplace_back();
        out_one.name = one.name;
        out_one.contact_age = one.contact_age();
        out_one.lists = one.status.lists;
        out_one.watches = one.status.watches;
      }
    }
    return resources;
  };
  out.snapshot_age = [this]() -> std::optional<Seconds> {
    struct stat about {};
    const auto options = options_.latest();
    if (options->snapshot.empty() || ::stat(options->snapshot.c_str(), &about) != 0) {
      return std::nullopt;
    }
    return Seconds(static_cast<double>(std::time(nullptr) - about.st_mtim.tv_sec));
  };
  out.checks = [this] {
    return std::vector<obs::Suppliers::Check>{{"ping", "healthz", true, *pings_, 0}};
  };
  out.connections = [this] {
    const auto generation = shown();
    const auto limit = static_cast<std::size_t>(options_.latest()->service_metrics_limit);
    return generation ? generation->connections(limit) : std::vector<obs::Suppliers::Connections>{};
  };
  return out;
}

health::Readiness Front::readiness() {
  const auto generation = shown();
  return generation ? generation->readiness() : health::Readiness{};
}

http::Service Front::metrics_service(const config::Options& options) {
  health::MetricsPages pages;
  pages.metrics = [this] { return metrics_->text(); };
  pages.slis = [this] { return metrics_->slis(); };
  pages.proxy_mode = [this] {
    return std::string(config::name_of_back_end(options_.latest()->mode));
  };
  pages.config = [this] { return options_.latest()->configz; };
  pages.flags = [this] {
    const auto now = options_.latest();
    return std::vector<std::pair<std::string, std::string>>(
        now->effective.begin(), now->effective.end());
  };
  pages.version = SHUNT_VERSION;
  pages.started = started_;
  pages.pings = pings_;
  if (options.enable_profiling) {
    pages.set_verbosity = [](int verbosity) -> Result<> {
      log::set_level(log::level_for_verbosity(verbosity));
      log::info("log level changed", {kv("v", verbosity)});
      return {};
    };
  }
  return health::metrics_pages(std::move(pages));
}

void Front::listen(
    http::Server& server,
    std::optional<http::Server::ListenerId>& listener,
    const std::optional<net::SocketAddress>& address,
    const http::Service& service,
    const char* reason) {
  if (listener) {
    server.close(*listener);
    listener.reset();
  }
  if (!address) {
    return;
  }
  listener = server.keep_listening({*address, http::Stack::Both}, service, [&](const Error& error) {
    log::error("cannot listen", {kv("for", reason), kv("error", error.what)});
    kube::Notice notice;
    notice.kind = kube::Notice::Kind::Node;
    notice.object = {"", node_name_};
    notice.reason = reason;
    notice.action = "StartKubeProxy";
    notice.note = error.what;
    cannot_listen_(notice, error);
  });
}

void Front::apply(const config::Options& options) {
  const auto before = options_.latest();
  const bool first = !health_listener_ && !metrics_listener_;
  options_.publish(std::make_shared<const config::Options>(options));
  health_->set_timeout(2 * options.sync_period);
  if (first || before->healthz != options.healthz) {
    listen(
        *health_server_,
        health_listener_,
        options.healthz,
        health::health_pages(*health_, [this] { return readiness(); }),
        "FailedToStartProxierHealthcheck");
  }
  if (first || before->metrics != options.metrics ||
      before->enable_profiling != options.enable_profiling) {
    listen(
        *metrics_server_,
        metrics_listener_,
        options.metrics,
        metrics_service(options),
        "FailedToStartMetricServer");
  }
}

void Front::show(std::shared_ptr<Generation> generation) {
  const std::lock_guard lock(shown_mutex_);
  shown_ = std::move(generation);
}

SourceHooks Front::source_hooks() {
  SourceHooks hooks;
  hooks.on_request = [this](const apiserver::RequestSeen& seen) {
    metrics_->request_done(
        seen.status,
        seen.method,
        verb_of(seen.method),
        seen.host,
        std::chrono::duration_cast<Seconds>(seen.duration));
  };
  hooks.unreadable = [this](const char* resource) { metrics_->unreadable(resource); };
  return hooks;
}

}  // namespace shunt::app
