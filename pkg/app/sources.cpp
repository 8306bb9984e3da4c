#include "app/sources.h"

#include <limits.h>
#include <unistd.h>

#include <utility>

#include "apiserver/content.h"
#include "events/recorder.h"
#include "manifests/source.h"

namespace shunt::app {
namespace {

using kube::Notice;

std::string host_name() {
  char buffer[HOST_NAME_MAX + 1] = {};
  return ::gethostname(buffer, sizeof buffer - 1) == 0 ? buffer : "unknown";
}

const char* resource_of(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::Service:
      return "services";
    case Notice::Kind::EndpointSlice:
      return "endpointslices";
    case Notice::Kind::Node:
      return "nodes";
    case Notice::Kind::ServiceCidr:
      return "servicecidrs";
  }
  return "";
}

class ApiServer : public Sources {
 public:
  ApiServer(
      const config::Options& options,
      std::unique_ptr<apiserver::Connector> connector,
      sync::Mailboxes& mailboxes,
      const SourceHooks& hooks)
      : connector_(std::move(connector)),
        recorder_(*connector_, events::reporter_on(host_name())),
        options_(reflector_options(options, hooks)),
        services_(*connector_, options_, mailboxes.services),
        slices_(*connector_, options_, mailboxes.slices),
        nodes_(*connector_, options_, mailboxes.nodes),
        service_cidrs_(*connector_, options_, mailboxes.service_cidrs) {}

  void start() override {
    recorder_.start();
    services_.start();
    slices_.start();
    nodes_.start();
    service_cidrs_.start();
  }

  void stop() override {
    services_.stop();
    slices_.stop();
    nodes_.stop();
    service_cidrs_.stop();
    recorder_.stop();
  }

  std::vector<Resource> resources() const override {
    return {
        {"services", services_.status()},
        {"endpointslices", slices_.status()},
        {"nodes", nodes_.status()},
        {"servicecidrs", service_cidrs_.status()}};
  }

  std::string name() const override { return connector_->server(); }
  void tell(const Notice& notice) override { recorder_.record(notice); }

 private:
  apiserver::ReflectorOptions reflector_options(
      const config::Options& options, const SourceHooks& hooks) {
    apiserver::ReflectorOptions out;
    out.node_name = options.node_name;
    out.stall_timeout = options.watch_stall_timeout;
    out.accept = apiserver::accept_header(options.content_type, options.accept_content_types);
    out.notices = [this, unreadable = hooks.unreadable](const Notice& notice) {
      if (unreadable) {
        unreadable(resource_of(notice.kind));
      }
      recorder_.record(notice);
    };
    return out;
  }

  std::unique_ptr<apiserver::Connector> connector_;
  events::Recorder recorder_;
  apiserver::ReflectorOptions options_;
  apiserver::Reflector<kube::Service> services_;
  apiserver::Reflector<kube::EndpointSlice> slices_;
  apiserver::Reflector<kube::Node> nodes_;
  apiserver::Reflector<kube::ServiceCidr> service_cidrs_;
};

class Manifests : public Sources {
 public:
  Manifests(const config::Options& options, sync::Mailboxes& mailboxes)
      : directory_(options.manifests),
        source_(
            source_options(options),
            {mailboxes.services, mailboxes.slices, mailboxes.nodes, mailboxes.service_cidrs}) {}

  void start() override { source_.start(); }
  void stop() override { source_.stop(); }
  std::vector<Resource> resources() const override { return {}; }
  std::string name() const override { return directory_; }

 private:
  static manifests::SourceOptions source_options(const config::Options& options) {
    manifests::SourceOptions out;
    out.directory = options.manifests;
    out.node_name = options.node_name;
    return out;
  }

  std::string directory_;
  manifests::Source source_;
};

}  // namespace

Result<std::unique_ptr<Sources>> open_sources(
    const config::Options& options, sync::Mailboxes& mailboxes, const SourceHooks& hooks) {
  if (!options.manifests.empty()) {
    return std::make_unique<Manifests>(options, mailboxes);
  }
  auto connector = apiserver::Connector::open(
      {options.kubeconfig, options.master, "kube-shunt", hooks.on_request});
  if (!connector) {
    return tl::unexpected(connector.error());
  }
  return std::make_unique<ApiServer>(options, std::move(*connector), mailboxes, hooks);
}

}  // namespace shunt::app
