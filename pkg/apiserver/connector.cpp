#include "apiserver/connector.h"

#include "apiserver/connector_impl.h"

namespace shunt::apiserver {
namespace {

// Between two processes of one machine there is no network to save, and both pay with its cores.
bool is_loopback(const ServerUrl& server) { return server.ip && net::is_loopback(*server.ip); }

// It goes into a request as it is.
Result<> check_user_agent(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      return fail(Errc::Invalid, "the User-Agent has control characters");
    }
  }
  return {};
}

}  // namespace

Connector::Impl::Impl(std::unique_ptr<Credentials> credentials, ConnectorOptions options)
    : server(credentials->access().server),
      server_text(to_string(server)),
      user_agent(std::move(options.user_agent)),
      tls_name(
          credentials->access().tls_server_name.empty() ? server.host
                                                        : credentials->access().tls_server_name),
      compression(!credentials->access().disable_compression && !is_loopback(server)),
      on_request(std::move(options.on_request)),
      credentials_(std::move(credentials)) {}

Result<Connection> Connector::Impl::connect(
    const Identity& identity, const ConnectionLimits& limits, int stop_fd) {
  std::vector<net::IpAddress> addresses;
  if (server.ip) {
    addresses.push_back(*server.ip);
  } else if (auto found = resolver_.resolve(server.host, Deadline::in(limits.dial, stop_fd));
             found) {
    addresses = std::move(*found);
  } else {
    return tl::unexpected(found.error());
  }
  auto connection = Connection::dial(addresses, server.port, limits, stop_fd);
  if (connection && identity.tls) {
    if (auto secured =
            connection->start_tls(*identity.tls, tls_name, Deadline::in(limits.handshake, stop_fd));
        !secured) {
      return tl::unexpected(secured.error());
    }
  }
  return connection;
}

Connector::Connector(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connector::~Connector() = default;

Result<std::unique_ptr<Connector>> Connector::open(ConnectorOptions options) {
  if (auto checked = check_user_agent(options.user_agent); !checked) {
    return tl::unexpected(checked.error());
  }
  auto access = options.kubeconfig.empty() && options.master.empty()
                    ? in_cluster_access(pod_mounts_of_this_process())
                    : kubeconfig_access(options.kubeconfig, options.master);
  if (!access) {
    return tl::unexpected(access.error());
  }
  if (wants_proxy(proxy_environment_of_this_process(), access->server)) {
    return fail(
        Errc::Unsupported,
        "HTTPS_PROXY is set, and proxies are not supported: unset it, or add " +
            access->server.host + " to NO_PROXY");
  }
  auto credentials = Credentials::open(std::move(*access));
  if (!credentials) {
    return tl::unexpected(credentials.error());
  }
  return std::unique_ptr<Connector>(
      new Connector(std::make_unique<Impl>(std::move(*credentials), std::move(options))));
}

const std::string& Connector::server() const { return impl_->server_text; }

}  // namespace shunt::apiserver
