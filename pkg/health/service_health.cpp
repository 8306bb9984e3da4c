#include "health/service_health.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "health/json_text.h"

namespace shunt::health {
namespace {

class ServerListeners : public Listeners {
 public:
  explicit ServerListeners(http::Server& server) : server_(server) {}
  Result<std::uint64_t> listen(const http::ListenAddress& address, http::Service service) override {
    return server_.listen(address, std::move(service));
  }
  void close(std::uint64_t id) override { server_.close(id); }

 private:
  http::Server& server_;
};

}  // namespace

std::unique_ptr<Listeners> listeners_of(http::Server& server) {
  return std::make_unique<ServerListeners>(server);
}

http::Response service_answer(
    const kube::ObjectKey& service, std::size_t local_endpoints, bool proxy_healthy) {
  const std::string count = std::to_string(local_endpoints);
  std::string body = "{\n\t\"service\": {\n\t\t\"namespace\": ";
  body += json_string(service.name_space);
  body += ",\n\t\t\"name\": ";
  body += json_string(service.name);
  body += "\n\t},\n\t\"localEndpoints\": ";
  body += count;
  body += ",\n\t\"serviceProxyHealthy\": ";
  body += json_bool(proxy_healthy);
  body += "\n}";
  return {
      local_endpoints > 0 && proxy_healthy ? 200 : 503,
      "application/json",
      std::move(body),
      {{"X-Content-Type-Options", "nosniff"}, {"X-Load-Balancing-Endpoint-Weight", count}}};
}

ServiceHealth::ServiceHealth(Settings settings, std::unique_ptr<Listeners> listeners)
    : settings_(std::move(settings)), listeners_(std::move(listeners)) {
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    of(family).addresses = {net::IpAddress{family, {}}};
  }
}

ServiceHealth::~ServiceHealth() {
  for (const OfFamily& here : families_) {
    for (const auto& [service, open] : here.open) {
      close(open);
    }
  }
}

void ServiceHealth::set_addresses(net::Family family, std::vector<net::IpAddress> addresses) {
  OfFamily& here = of(family);
  std::sort(addresses.begin(), addresses.end());
  if (here.addresses != addresses) {
    here.addresses = std::move(addresses);
    here.addresses_changed = true;
  }
}

void ServiceHealth::update(
    net::Family family,
    const kube::ObjectKey& service,
    const std::optional<desired::HealthCheck>& wanted,
    const std::string& uid) {
  OfFamily& here = of(family);
  const auto it = here.wanted.find(service);
  if (!wanted) {
    if (it != here.wanted.end()) {
      here.wanted.erase(it);
      here.changed.insert(service);
    }
    return;
  }
  if (it == here.wanted.end() || it->second.check != *wanted || it->second.uid != uid) {
    here.wanted.insert_or_assign(service, Wanted{*wanted, uid});
    here.changed.insert(service);
  }
}

void ServiceHealth::commit(net::Family family) {
  OfFamily& here = of(family);
  std::set<kube::ObjectKey> services = std::exchange(here.changed, {});
  for (const auto& [service, said] : here.failed) {
    services.insert(service);
  }
  if (std::exchange(here.addresses_changed, false)) {
    for (const auto& [service, wanted] : here.wanted) {
      services.insert(service);
    }
  }
  for (const kube::ObjectKey& service : services) {
    close_outdated(here, service);
  }
  for (const kube::ObjectKey& service : services) {
    if (const auto it = here.wanted.find(service); it != here.wanted.end()) {
      open(here, service, it->second);
    } else {
      here.failed.erase(service);
    }
  }
}

// The whole Service, or what listens on addresses that the node has no more.
void ServiceHealth::close_outdated(OfFamily& here, const kube::ObjectKey& service) {
  const auto it = here.open.find(service);
  if (it == here.open.end()) {
    return;
  }
  Open& open = it->second;
  const auto wanted = here.wanted.find(service);
  if (wanted == here.wanted.end() || wanted->second.check.port != open.port) {
    close(open);
    here.open.erase(it);
    return;
  }
  std::erase_if(open.listeners, [&](const auto& listener) {
    const bool outdated = !std::ranges::binary_search(here.addresses, listener.first);
    if (outdated) {
      listeners_->close(listener.second);
    }
    return outdated;
  });
}

void ServiceHealth::open(OfFamily& here, const kube::ObjectKey& service, const Wanted& wanted) {
  const auto [it, is_new] = here.open.try_emplace(service);
  Open& open = it->second;
  if (is_new) {
    open.port = wanted.check.port;
    open.told = std::make_shared<Told>();
    open.told->service = service;
    open.told->proxy_healthy = settings_.proxy_healthy;
  }
  open.told->local_endpoints = wanted.check.local_endpoints;
  const auto listening = listen_everywhere(here, open);
  if (listening) {
    here.failed.erase(service);
    return;
  }
  report(here, service, wanted, listening.error());
  if (is_new) {
    close(open);
    here.open.erase(it);
  }
}

Result<> ServiceHealth::listen_everywhere(OfFamily& here, Open& open) {
  Result<> outcome;
  for (const net::IpAddress& ip : here.addresses) {
    if (open.listeners.contains(ip)) {
      continue;
    }
    const auto id = listeners_->listen(
        {{ip, open.port}},
        {[told = open.told](const http::Request&) {
           return service_answer(
               told->service, told->local_endpoints, !told->proxy_healthy || told->proxy_healthy());
         },
         true});
    if (id) {
      open.listeners.emplace(ip, *id);
    } else if (outcome) {
      outcome = tl::unexpected(id.error());
    }
  }
  return outcome;
}

void ServiceHealth::close(const Open& open) {
  for (const auto& [ip, id] : open.listeners) {
    listeners_->close(id);
  }
}

// Once for each failure, however often it is tried.
void ServiceHealth::report(
    OfFamily& here, const kube::ObjectKey& service, const Wanted& wanted, const Error& error) {
  const std::string port = std::to_string(net::number(wanted.check.port));
  std::string& said = here.failed[service];
  std::string note = "node " + settings_.node_name + " failed to start healthcheck \"" +
                     kube::to_string(service) + "\" on port " + port + ": " + error.what;
  if (said == note) {
    return;
  }
  said = note;
  log::error(
      "cannot listen on the health port of a Service, will try again",
      {log::kv("service", kube::to_string(service)),
       log::kv("port", port),
       log::kv("error", error.what)});
  if (settings_.notice) {
    settings_.notice(
        {true,
         kube::Notice::Kind::Service,
         service,
         wanted.uid,
         "FailedToStartServiceHealthcheck",
         "Listen",
         std::move(note)});
  }
}

bool ServiceHealth::waiting() const {
  return std::ranges::any_of(families_, [](const OfFamily& here) { return !here.failed.empty(); });
}

std::size_t ServiceHealth::size() const {
  std::size_t count = 0;
  for (const OfFamily& here : families_) {
    count += here.open.size();
  }
  return count;
}

}  // namespace shunt::health
