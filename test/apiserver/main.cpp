// test-apiserver: the server of server.h as a program. See README.md.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "test/apiserver/server.h"

namespace {

using shunt::test_api::Server;
using shunt::test_api::ServerOptions;

struct Flags {
  std::vector<std::string> listen;
  std::vector<std::string> insecure_listen;
  std::string rbac;
  bool no_streaming_lists = false;
  bool no_protobuf = false;
};

void add_flags(CLI::App& app, Flags& flags, ServerOptions& options) {
  app.add_option("--listen", flags.listen, "HTTPS on IP:PORT (repeatable; port 0: any free one)");
  app.add_option("--insecure-listen", flags.insecure_listen, "plain HTTP, all allowed, /_test");
  app.add_option("--pki", options.pki, "directory of certificates and kubeconfigs, made if absent");
  app.add_option("--tls-cert", options.tls_cert, "server certificate (PEM), instead of --pki");
  app.add_option("--tls-key", options.tls_key, "its key");
  app.add_option("--client-ca", options.client_ca, "CA of client certificates");
  app.add_option("--token", options.auth.tokens, "bearer token of system:kube-proxy (repeatable)");
  app.add_option("--token-file", options.auth.token_file, "more of them, one a line; re-read");
  app.add_option("--admin-token", options.auth.admin_tokens, "bearer token that may do anything");
  app.add_option("--rbac", flags.rbac, "kube-proxy: system:kube-proxy may only do its work")
      ->check(CLI::IsMember({"kube-proxy"}));
  app.add_flag("--no-streaming-lists", flags.no_streaming_lists, "refuse sendInitialEvents (422)");
  app.add_flag("--no-protobuf", flags.no_protobuf, "answer JSON, whatever the client prefers");
  app.add_option("--bookmark-interval", options.bookmark_interval_ms, "milliseconds")
      ->check(CLI::PositiveNumber);
  app.add_option("--event-log", options.log_size, "changes a resource that watches can go back");
  app.add_option("--load", options.load, "manifests: file or directory (repeatable)");
  app.add_option("--generate", options.generate, "JSON: objects made at start, as by /_test");
  app.add_option("--state", options.state, "file that keeps objects and versions over restarts");
  app.add_flag(
      "--watch-cache-empty-after-restart",
      options.forget_log_after_restart,
      "with --state: versions of before the restart are too old (410)");
}

std::vector<shunt::net::SocketAddress> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<shunt::net::SocketAddress> out;
  for (const std::string& text : texts) {
    const auto address = shunt::net::parse_socket_address(text);
    if (!address) {
      throw CLI::ValidationError("not IP:PORT: " + text);
    }
    out.push_back(*address);
  }
  return out;
}

// A large cluster is gigabytes of small strings. One heap that grows by large steps: by default
// each thread has its own, which grows by a page and a system call at a time.
void prepare_heap() {
  constexpr int kStep = 64 << 20;
  (void)mallopt(M_ARENA_MAX, 1);    // slower when refused, nothing else
  (void)mallopt(M_TOP_PAD, kStep);  // the same
}

int run(int argc, char** argv) {
  prepare_heap();
  CLI::App app("A Kubernetes API server for tests");
  Flags flags;
  ServerOptions options;
  add_flags(app, flags, options);
  try {
    app.parse(argc, argv);
    options.listen = parse_addresses(flags.listen);
    options.insecure_listen = parse_addresses(flags.insecure_listen);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (options.listen.empty() && options.insecure_listen.empty()) {
    options.listen = {*shunt::net::parse_socket_address("127.0.0.1:0")};
  }
  if (!options.listen.empty() && options.pki.empty() && options.tls_cert.empty()) {
    fmt::print(stderr, "HTTPS needs --pki DIR, or --tls-cert and --tls-key\n");
    return 2;
  }
  options.auth.rbac = !flags.rbac.empty();
  options.protobuf = !flags.no_protobuf;
  options.streaming_lists = !flags.no_streaming_lists;

  // Blocked before any thread exists, so that sigwait below is the only one to see them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  (void)pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // fails only for a bad argument

  const auto server = Server::start(options);
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().what);
    return 1;
  }
  for (const auto& address : (*server)->addresses()) {
    fmt::print("listening on https://{}\n", shunt::net::to_string(address));
  }
  for (const auto& address : (*server)->insecure_addresses()) {
    fmt::print("listening on http://{}\n", shunt::net::to_string(address));
  }
  (void)std::fflush(stdout);  // whoever started us may have left
  int signal = 0;
  (void)sigwait(&signals, &signal);  // fails only for a bad argument
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
