#include "test/apiserver/server.h"

#include <algorithm>

#include "test/apiserver/admin_api.h"
#include "test/apiserver/load_api.h"
#include "test/apiserver/manifests.h"
#include "test/apiserver/pki.h"
#include "test/apiserver/tls.h"

namespace shunt::test_api {
namespace {

bool is_unspecified(const net::IpAddress& ip) {
  return std::ranges::all_of(ip.bytes, [](std::uint8_t byte) { return byte == 0; });
}

// A client cannot connect to "any address".
net::SocketAddress reachable(net::SocketAddress address) {
  if (is_unspecified(address.ip)) {
    const bool v4 = address.ip.family == net::Family::IPv4;
    address.ip = *net::parse_ip(v4 ? "127.0.0.1" : "::1");
  }
  return address;
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      store_(
          options_.log_size,
          [this](std::size_t table, const std::string& key, const Change& change) {
            journal_.write(table, key, change);
          }),
      faults_([this] { store_.ring_all(); }),
      generator_(store_, options_.protobuf),
      http_(
          [this](const Request& request, Response& response) { handle(request, response); },
          [this] { return faults_.take_refusal(); }) {}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  std::unique_ptr<Server> server(new Server(std::move(options)));
  if (auto loaded = server->load(); !loaded) {
    return tl::unexpected(loaded.error());
  }
  if (auto generated = server->generate(); !generated) {
    return tl::unexpected(generated.error());
  }
  if (auto listening = server->listen(); !listening) {
    return tl::unexpected(listening.error());
  }
  return server;
}

Result<> Server::load() {
  if (!options_.state.empty()) {
    if (auto opened = journal_.open(options_.state, store_); !opened) {
      return opened;
    }
    if (options_.forget_log_after_restart) {
      store_.forget_log();
    }
  }
  for (const std::string& path : options_.load) {
    auto objects = read_manifests(path);
    if (!objects) {
      return tl::unexpected(objects.error());
    }
    const auto applied = apply_objects(store_, std::move(*objects), false);
    if (!applied) {
      return fail(path, applied.error());
    }
  }
  return {};
}

// The objects are there before anybody can connect; what happens to them goes on behind our back.
Result<> Server::generate() {
  if (options_.generate.empty()) {
    return {};
  }
  auto spec = parse_load_spec(Json::parse(options_.generate, nullptr, false));
  if (!spec) {
    return fail("generate", spec.error());
  }
  (void)generator_.start(std::move(*spec));  // nothing else can be running yet
  generator_.wait_for_objects();
  const std::string error = text_at(generator_.progress(), "error");
  return error.empty() ? Result<>() : fail(Errc::Invalid, "generate: " + error);
}

Result<std::shared_ptr<SSL_CTX>> Server::tls_context() {
  if (options_.pki.empty()) {
    return make_tls_context(options_.tls_cert, options_.tls_key, options_.client_ca);
  }
  std::vector<net::IpAddress> names;
  for (const net::SocketAddress& address : options_.listen) {
    names.push_back(reachable(address).ip);
  }
  if (auto made = ensure_pki(options_.pki, names); !made) {
    return tl::unexpected(made.error());
  }
  if (options_.auth.tokens.empty() && options_.auth.token_file.empty()) {
    options_.auth.token_file = options_.pki + "/token";
  }
  return make_tls_context(
      options_.pki + "/server.crt", options_.pki + "/server.key", options_.pki + "/ca.crt");
}

Result<> Server::listen() {
  if (!options_.listen.empty()) {
    const auto context = tls_context();
    if (!context) {
      return tl::unexpected(context.error());
    }
    for (const net::SocketAddress& address : options_.listen) {
      const auto bound = http_.listen(address, *context);
      if (!bound) {
        return tl::unexpected(bound.error());
      }
      addresses_.push_back(*bound);
    }
  }
  for (const net::SocketAddress& address : options_.insecure_listen) {
    const auto bound = http_.listen(address, nullptr);
    if (!bound) {
      return tl::unexpected(bound.error());
    }
    insecure_addresses_.push_back(*bound);
  }
  if (options_.pki.empty() || addresses_.empty()) {
    return {};
  }
  const auto& tokens = options_.auth.tokens;
  return write_kubeconfigs(
      options_.pki,
      "https://" + net::to_string(reachable(addresses_.front())),
      tokens.empty() ? "" : tokens.front());
}

void Server::handle(const Request& request, Response& response) {
  const Context context{options_, store_, faults_, stats_};
  try {
    if (request.trusted_port && (handle_load(context, generator_, request, response) ||
                                 handle_admin(context, journal_, request, response))) {
      return;
    }
    handle_api(context, request, response);
  } catch (const std::exception& error) {  // nlohmann, for an object of types nobody expects
    Status status = generic(500);
    status.message = error.what();
    send_status(context, request, response, status);
  }
}

}  // namespace shunt::test_api
