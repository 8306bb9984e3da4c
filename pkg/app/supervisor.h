// The main thread after start-up: runs a generation of the daemon, and answers signals and a
// changed configuration file with another one.
//
//   SIGTERM, SIGINT  ends; the kernel's state stays
//   SIGHUP           reads the configuration again, as a changed file does
//   SIGUSR2          executes the program's file again, in the same process: an upgrade
//
// Another configuration is checked first, and everything it needs is opened before the old
// generation stops; when any of that fails, the old one goes on and the log says why.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "app/front.h"
#include "app/generation.h"
#include "base/published.h"
#include "base/wake_fd.h"
#include "config/config_file_watch.h"
#include "config/options.h"
#include "health/service_manager.h"
#include "netlink/route.h"
#include "relay/relay.h"

namespace shunt::app {

class Supervisor {
 public:
  // `signals`: a signalfd of the signals above, which are blocked in every thread. `program`: the
  // file to execute for an upgrade.
  struct Process {
    int signals = -1;
    std::string program;
    std::string notify_socket;  // as it was in the environment
    health::ServiceManager service_manager;
  };

  Supervisor(config::Invocation invocation, Process process);
  ~Supervisor();

  // Until a signal ends it. The error: what it could not start with, or gave up for.
  Result<> run();

 private:
  Result<std::shared_ptr<Generation>> make_generation(const config::Options& options);
  void start(std::shared_ptr<Generation> generation);
  void stop_generation();
  void drop_relay(const config::Options& options);
  Result<> loop();
  void wait();
  bool take_signals();  // false: to end
  void reload(const char* why);
  Result<> rebuild(config::Options& next);  // sets its mode: see judge_settings()
  void execute_again();
  void feed_watchdog();
  void watch_config_file();
  void watch_addresses();
  void look_around();
  void begin_take_over();
  void end_take_over();

  config::Invocation invocation_;
  config::Options options_;  // in force
  Process process_;
  WakeFd wake_;  // from other threads: something below is to be looked at
  std::atomic<bool> first_sync_done_ = false;
  Published<Error> gave_up_;
  std::unique_ptr<Front> front_;
  std::unique_ptr<relay::Relay> relay_;
  std::shared_ptr<Generation> generation_;
  std::optional<config::ConfigFileWatch> config_watch_;
  std::optional<netlink::AddressMonitor> addresses_;
  std::optional<Clock::time_point> snapshot_due_;
  int last_signal_ = 0;
  std::size_t descriptors_ = 1024;
  WakeFd stop_take_over_;
  std::thread take_over_;
  bool taken_over_ = false;  // in this mode; while take_over_ runs it is that thread's
  std::unique_ptr<backend::ipvs::Withdrawal> withdrawal_;  // likewise
};

}  // namespace shunt::app
