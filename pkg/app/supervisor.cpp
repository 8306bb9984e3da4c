#include "app/supervisor.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "app/kernel_settings.h"
#include "app/preflight.h"
#include "base/log.h"
#include "base/subprocess.h"

namespace shunt::app {
namespace {

using log::kv;

// What a new program may take to say that it would run with our arguments.
constexpr std::chrono::seconds kTrialTime{10};
// How long the API server may be silent at start before a snapshot serves.
constexpr std::chrono::seconds kServerPatience{5};

// Descriptors that this process may open: the relay and the health ports want many. The soft limit
// is often 1024 for the sake of select(), which nobody here calls.
std::size_t raise_descriptors() {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);  // cannot fail
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // else it stays as it is, which is asked next
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

kube::Notice about_node(const config::Options& options, const char* reason) {
  kube::Notice notice;
  notice.warning = false;
  notice.kind = kube::Notice::Kind::Node;
  notice.object = {"", options.node_name};
  notice.reason = reason;
  notice.action = "StartKubeProxy";  // as kube-proxy's
  return notice;
}

void say(const config::Options& options) {
  for (const std::string& warning : options.warnings) {
    log::warn("configuration", {kv("what", warning)});
  }
}

}  // namespace

Supervisor::Supervisor(config::Invocation invocation, Process process)
    : invocation_(std::move(invocation)),
      options_(invocation_.options),
      process_(std::move(process)) {}

Supervisor::~Supervisor() { end_take_over(); }

// With the relay when the options want one, which is started here and ended by drop_relay().
Result<std::shared_ptr<Generation>> Supervisor::make_generation(const config::Options& options) {
  if (options.localhost_node_ports && !relay_) {
    auto started = relay::Relay::start(relay::limits_within(descriptors_), seeded_random());
    if (!started) {
      return tl::unexpected(started.error());
    }
    relay_ = std::move(*started);
  }
  Generation::Surroundings surroundings;
  surroundings.observer = &front_->watcher();
  surroundings.hooks = front_->source_hooks();
  surroundings.on_pass = [this](net::Family family, std::chrono::nanoseconds took) {
    front_->metrics().conntrack_pass(family, took);
  };
  surroundings.relay = options.localhost_node_ports ? relay_.get() : nullptr;
  surroundings.give_up = [this](const Error& error) {
    gave_up_.publish(std::make_shared<const Error>(error));
    wake_.ring();
  };
  return Generation::make(options, surroundings);
}

void Supervisor::start(std::shared_ptr<Generation> generation) {
  generation_ = std::move(generation);
  withdrawal_ = begin_withdrawal(generation_->options());
  front_->watcher().begin(
      [raw = generation_.get()](const kube::Notice& notice) { raw->tell(notice); },
      [this] {
        first_sync_done_ = true;
        wake_.ring();
      });
  generation_->start();
  front_->show(generation_);
}

void Supervisor::stop_generation() {
  front_->show(nullptr);
  generation_->stop();
  generation_.reset();
}

// While no generation runs that uses it.
void Supervisor::drop_relay(const config::Options& options) {
  if (!options.localhost_node_ports) {
    relay_.reset();
  }
}

void Supervisor::watch_config_file() {
  if (options_.config_file.empty()) {
    return;
  }
  auto watch = config::ConfigFileWatch::open(options_.config_file, options_.config_text);
  if (watch) {
    config_watch_.emplace(std::move(*watch));
  } else {
    log::warn(
        "changes of the configuration file are not noticed, SIGHUP reads it again",
        {kv("error", watch.error().what)});
  }
}

// For the health ports of Services, which listen on single addresses where nodePortAddresses say
// so. Rules ask the kernel's routes by themselves.
void Supervisor::watch_addresses() {
  auto monitor = netlink::AddressMonitor::open();
  if (monitor) {
    addresses_.emplace(std::move(*monitor));
  } else {
    log::warn(
        "changes of the host's addresses are not noticed", {kv("error", monitor.error().what)});
  }
}

Result<> Supervisor::run() {
  descriptors_ = raise_descriptors();
  auto front = Front::start(options_, [this](const kube::Notice& notice, const Error& error) {
    if (generation_) {
      generation_->tell(notice);
    }
    if (options_.bind_address_hard_fail) {
      gave_up_.publish(std::make_shared<const Error>(error));
      wake_.ring();
    }
  });
  if (!front) {
    return tl::unexpected(front.error());
  }
  front_ = std::move(*front);
  auto generation = make_generation(options_);
  if (!generation) {
    return tl::unexpected(generation.error());
  }
  log::info(
      "kube-shunt starts",
      {kv("version", SHUNT_VERSION),
       kv("node", options_.node_name),
       kv("source", (*generation)->sources().name()),
       kv("mode", config::name_of_back_end(options_.mode))});
  start(std::move(*generation));
  generation_->tell(about_node(options_, "Starting"));
  watch_config_file();
  watch_addresses();
  if (!options_.snapshot.empty()) {
    snapshot_due_ = Clock::now() + kServerPatience;
  }
  process_.service_manager.ready("waiting for the first sync");

  Result<> outcome = loop();
  process_.service_manager.stopping();
  if (const auto error = gave_up_.latest()) {
    outcome = tl::unexpected(*error);
  }
  log::info("stopping, Services stay as they are", {kv("signal", last_signal_)});
  end_take_over();
  stop_generation();
  return outcome;
}

Result<> Supervisor::loop() {
  while (!gave_up_.latest()) {
    wake_.clear();
    look_around();
    feed_watchdog();
    wait();
    if (!take_signals()) {
      return {};
    }
  }
  return {};
}

void Supervisor::look_around() {
  if (config_watch_ && config_watch_->changed()) {
    reload("the file changed");
  }
  if (addresses_ && addresses_->take_changes()) {
    front_->watcher().addresses_changed();
    generation_->poke();
  }
  if (first_sync_done_.exchange(false)) {
    process_.service_manager.status("in sync");
    begin_take_over();
  }
  if (generation_->sync_status()->synced) {
    snapshot_due_.reset();
  } else if (snapshot_due_ && *snapshot_due_ <= Clock::now()) {
    snapshot_due_.reset();
    generation_->serve_snapshot();
  }
}

void Supervisor::wait() {
  std::vector<pollfd> descriptors{
      {process_.signals, POLLIN, 0},
      {wake_.fd(), POLLIN, 0},
      {config_watch_ ? config_watch_->fd() : -1, POLLIN, 0},
      {addresses_ ? addresses_->fd() : -1, POLLIN, 0}};
  int timeout = -1;
  if (const auto watchdog = process_.service_manager.watchdog()) {
    timeout = static_cast<int>(
        std::max<std::int64_t>(1, std::chrono::ceil<Millis>(*watchdog / 3).count()));
    generation_->poke();  // a loop that lives comes round before we look again
  }
  if (snapshot_due_) {
    const auto left = std::chrono::ceil<Millis>(*snapshot_due_ - Clock::now()).count();
    const int until = static_cast<int>(std::clamp<Millis::rep>(left, 0, 60'000));
    timeout = timeout < 0 ? until : std::min(timeout, until);
  }
  (void)::poll(descriptors.data(), descriptors.size(), timeout);  // EINTR: looks around
}

void Supervisor::feed_watchdog() {
  const auto watchdog = process_.service_manager.watchdog();
  if (!watchdog) {
    return;
  }
  // It was poked, so that idleness is no excuse.
  const health::Heartbeat heartbeat{generation_->heartbeat(), /*work_waits=*/true};
  if (health::is_alive(heartbeat, Clock::now(), std::chrono::floor<Millis>(*watchdog))) {
    process_.service_manager.feed_watchdog();
  }
}

bool Supervisor::take_signals() {
  signalfd_siginfo info{};
  bool reload_asked = false;
  bool upgrade_asked = false;
  while (::read(process_.signals, &info, sizeof info) == ssize_t(sizeof info)) {
    last_signal_ = static_cast<int>(info.ssi_signo);
    reload_asked = reload_asked || last_signal_ == SIGHUP;
    upgrade_asked = upgrade_asked || last_signal_ == SIGUSR2;
    if (last_signal_ == SIGTERM || last_signal_ == SIGINT) {
      return false;
    }
  }
  if (reload_asked) {
    reload("SIGHUP");
  }
  if (upgrade_asked) {
    execute_again();
  }
  return true;
}

// ---- another configuration ----

void Supervisor::reload(const char* why) {
  process_.service_manager.reloading();
  auto next = config::load(invocation_.line);
  Result<> done;
  if (!next) {
    done = tl::unexpected(next.error());
  } else {
    const auto changes = config::differences(options_, *next);
    bool rebuilds = false;
    for (const config::FieldChange& change : changes) {
      rebuilds = rebuilds || change.application == config::FieldChange::Application::ByRebuilding;
      log::info(
          "configuration field changed",
          {kv("field", change.field), kv("from", change.before), kv("to", change.after)});
    }
    if (rebuilds) {
      done = rebuild(*next);
    } else {
      next->mode = options_.mode;  // which the kernel had a say in
    }
    if (done) {
      log::set_format(next->log_format);
      log::set_level(log::level_for_verbosity(next->verbosity));
      options_ = *next;
      say(options_);
      log::info("configuration read again", {kv("because", why), kv("changes", changes.size())});
    }
  }
  if (!done) {
    log::error(
        "the configuration is not taken, the one in force stays",
        {kv("because", why), kv("error", done.error().what)});
  }
  front_->metrics().config_reloaded(done.has_value());
  process_.service_manager.ready(done ? "in sync" : "the configuration was refused");
}

Result<> Supervisor::rebuild(config::Options& next) {
  const auto mode = judge_settings(next, gather_facts(next.mode));
  if (!mode) {
    return tl::unexpected(mode.error());
  }
  next.mode = *mode;
  auto generation = make_generation(next);
  if (!generation) {
    drop_relay(options_);  // the generation that runs has none
    return tl::unexpected(generation.error());
  }
  front_->apply(next);
  warn_of(set_up_kernel(next));
  set_oom_score_adj(next.oom_score_adj);
  end_take_over();
  // In the iptables mode it may be another variant from now on, whatever the options say.
  taken_over_ = taken_over_ && next.mode == generation_->options().mode &&
                next.mode != config::Mode::Iptables;
  stop_generation();
  drop_relay(next);
  start(std::move(*generation));
  return {};
}

// ---- another program ----

void Supervisor::execute_again() {
  std::vector<std::string> arguments{process_.program};
  arguments.insert(
      arguments.end(), invocation_.line.arguments.begin(), invocation_.line.arguments.end());
  Command trial;
  trial.argv = arguments;
  trial.argv.emplace_back("--check-config");
  trial.timeout = kTrialTime;
  const auto tried = shunt::run(trial);
  if (!tried || tried->exit_code != 0) {
    log::error(
        "the program is not executed again: it would not run",
        {kv("program", process_.program),
         kv("error", tried ? tried->diagnostics : tried.error().what)});
    return;
  }
  log::info(
      "executing the program again, Services stay as they are", {kv("program", process_.program)});
  process_.service_manager.reloading();
  end_take_over();
  stop_generation();
  if (!process_.notify_socket.empty()) {
    (void)::setenv("NOTIFY_SOCKET", process_.notify_socket.c_str(), 1);  // fails without memory
  }
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  (void)::execv(process_.program.c_str(), argv.data());
  log::error("the program cannot be executed", {kv("error", std::strerror(errno))});
  (void)::unsetenv("NOTIFY_SOCKET");
  auto generation = make_generation(options_);
  if (!generation) {
    gave_up_.publish(std::make_shared<const Error>(generation.error()));
    return;
  }
  start(std::move(*generation));
  process_.service_manager.ready("in sync");
}

// ---- kube-proxy's leftovers ----

// Off the main thread: iptables may take seconds, and connections last for days.
void Supervisor::begin_take_over() {
  end_take_over();
  stop_take_over_.clear();
  if (taken_over_ && !withdrawal_) {
    return;
  }
  take_over_ = std::thread([this, options = generation_->options()] {
    (void)::pthread_setname_np(::pthread_self(), "take-over");  // a name is a nicety
    if (!taken_over_) {
      take_over(options, stop_take_over_.fd());
      taken_over_ = true;
    }
    if (withdrawal_) {
      withdraw(*withdrawal_, stop_take_over_.fd());
    }
  });
}

void Supervisor::end_take_over() {
  if (take_over_.joinable()) {
    stop_take_over_.ring();
    take_over_.join();
  }
}

}  // namespace shunt::app
