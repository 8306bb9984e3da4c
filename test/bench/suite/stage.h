// Where an agent is measured: a lab, the test API server with its load, and the agent as a process
// in the node's namespace. The programs are those beside the suite's own.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/suite/http_client.h"
#include "bench/suite/monotonic.h"
#include "netns/lab.h"
#include "netns/process.h"

namespace shunt::bench {

struct LoadSize {
  std::size_t services = 0;
  std::size_t endpoints = 0;  // of each
  std::string text() const;   // "10k x 10"
};

std::string program_beside_us(const std::string& name);

class Stage {
 public:
  static constexpr char kServer[] = "127.0.0.1:6443";
  static constexpr char kNode[] = "edge-a";

  explicit Stage(const LoadSize& load);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

  const LoadSize& load() const { return load_; }
  const lab::Netns& node() const { return lab_.node(); }
  const lab::Netns& clients() const { return lab_.outside(); }
  const lab::Netns& pods() const { return lab_.place("pods"); }
  HttpClient& http() { return http_; }
  bool has_generator() const { return has_generator_; }
  const std::string& directory() const { return directory_; }
  std::string pki() const { return directory_ + "/pki"; }

  void apply(const std::vector<nlohmann::json>& objects);
  void remove(const std::string& path);  // when it is there

  // When the process was about to begin.
  Nanoseconds start_daemon();
  void stop_daemon();
  void ensure_daemon();  // one runs and is in sync
  void kill_daemon();    // -9
  // It keeps its connections and does nothing.
  void freeze_daemon() const;
  void thaw_daemon() const;
  pid_t daemon_pid() const { return daemon_->pid(); }
  // Waits until the daemon says that it has in the kernel what the server has now, and answers its
  // status. Throws, with its log, when it takes longer.
  nlohmann::json wait_in_sync(std::chrono::seconds patience = std::chrono::seconds(300));

  // The same for what was written while it ran: every watch has been sent everything, and what came
  // was applied. The versions of quiet resources tell nothing there before the next bookmark.
  void wait_applied();

  // Nothing of nf_tables is left on the node, as after a boot, and the kernel has done with freeing
  // what was there.
  void remove_rules() const;

 private:
  void start_server();
  void put_load();
  void wait_for_generator();
  std::string log_tail(const std::string& name) const;

  LoadSize load_;
  std::string directory_;
  lab::Lab lab_;
  HttpClient http_;
  bool has_generator_ = false;
  std::optional<lab::Process> server_;
  std::optional<lab::Process> daemon_;
};

}  // namespace shunt::bench
