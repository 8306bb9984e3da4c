#include "app/app.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "app/kernel.h"
#include "app/kernel_settings.h"
#include "app/preflight.h"
#include "app/supervisor.h"
#include "base/log.h"
#include "base/unique_fd.h"

namespace shunt::app {
namespace {

using log::kv;

// Blocked in every thread, so that only the main thread sees them, when it looks.
Result<UniqueFd> take_over_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) {
    ::sigaddset(&signals, signal);
  }
  (void)::pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // fails only for a wrong `how`
  (void)::signal(SIGPIPE, SIG_IGN);  // a peer that went is an error code, not the end
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    return fail(Errc::Again, std::string("signalfd: ") + std::strerror(errno), errno);
  }
  return fd;
}

// The file that runs now. The name and not the file itself: an upgrade puts another one there.
std::string program_file() {
  char path[PATH_MAX] = {};
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path - 1);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "kube-shunt";
}

Result<config::Mode> look_at_node(const config::Options& options) {
  const Facts facts = gather_facts(options.mode);
  for (const Finding& finding : preflight(facts)) {
    if (finding.fatal) {
      return fail(Errc::Denied, finding.what + "; " + finding.how);
    }
    log::warn("preflight", {kv("what", finding.what), kv("how", finding.how)});
  }
  if (families_of_host().size() < 2) {
    log::info("no IPv6 on this node, Services get IPv4 only");
  }
  return judge_settings(options, facts);
}

// What needs privileges that the daemon itself may lack later.
Result<> set_up_node(config::Options& options) {
  if (auto settled = settle_iptables_variant(options); !settled) {
    return settled;
  }
  const auto unwritten = set_up_kernel(options);
  if (!unwritten.empty()) {
    return refuse(unwritten);
  }
  if (auto kernel = open_kernel(options, {}); !kernel) {
    return tl::unexpected(kernel.error());
  }
  log::info("the node is set up");
  return {};
}

}  // namespace

Result<> run(config::Invocation invocation) {
  config::Options& options = invocation.options;
  auto signals = take_over_signals();
  if (!signals) {
    return tl::unexpected(signals.error());
  }
  const char* notify_socket = ::getenv("NOTIFY_SOCKET");
  Supervisor::Process process;
  process.signals = signals->get();
  process.program = program_file();
  process.notify_socket = notify_socket != nullptr ? notify_socket : "";
  process.service_manager = health::ServiceManager::from_environment();

  log::set_format(options.log_format);
  log::set_level(log::level_for_verbosity(options.verbosity));
  for (const std::string& warning : options.warnings) {
    log::warn("configuration", {kv("what", warning)});
  }
  if (options.cleanup || options.cleanup_kube_proxy) {
    return clean_up(options);
  }
  const auto mode = look_at_node(options);
  if (!mode) {
    return tl::unexpected(mode.error());
  }
  options.mode = *mode;
  if (options.init_only) {
    return set_up_node(options);
  }
  warn_of(set_up_kernel(options));
  set_oom_score_adj(options.oom_score_adj);
  return Supervisor(std::move(invocation), std::move(process)).run();
}

}  // namespace shunt::app
