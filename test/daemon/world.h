// A lab with a test API server and the daemon in the node's namespace, both as child processes:
// what a test of the whole needs. The programs are those beside the test's own; the daemon is
// SHUNT_DAEMON, where that is set.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/socket_address.h"
#include "netns/lab.h"
#include "netns/plain_http.h"
#include "netns/process.h"

namespace shunt::test {

// Throws on what is no address: a test's own mistake.
inline net::SocketAddress address(const std::string& text) {
  return net::parse_socket_address(text).value();
}

class World {
 public:
  struct Options {
    lab::LabSpec lab = shared_pods();
    std::vector<std::string> server_flags;
    std::vector<std::string> daemon_flags;
    std::string kubeconfig = "pki/kubeconfig";  // in directory()
    std::string config_file;                    // in directory(): the daemon's --config
    std::string daemon_program;                 // in directory(); "": that of this build
    std::vector<std::string> daemon_prefix;     // a command that executes the daemon
    bool start_daemon = true;
  };
  World() : World(Options{}) {}
  explicit World(Options options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // One place "pods" that holds 10.64.0.0/24 and fd64::/64; outside as default_lab_spec() has it.
  static lab::LabSpec shared_pods();

  const lab::Lab& lab() const { return lab_; }

  void start_daemon();
  void set_daemon_prefix(std::vector<std::string> prefix) {
    options_.daemon_prefix = std::move(prefix);
  }
  void kill_daemon();  // -9
  int stop_daemon();   // SIGTERM; the exit status
  void signal_daemon(int signal) const { daemon_->signal(signal); }
  pid_t daemon_pid() const { return daemon_->pid(); }
  bool has_daemon() const { return daemon_.has_value(); }
  void start_server(bool with_emptied_watch_cache = false);
  void kill_server();

  // The server's admin port; throws when the answer is an error. The body of the answer.
  std::string admin(
      const std::string& method, const std::string& path, const std::string& body = {}) const;
  void apply(
      const std::vector<nlohmann::json>& objects, bool raw = false) const;  // create or replace
  void remove(const std::string& kind, const std::string& name) const;      // in namespace "ns"
  void set_faults(const nlohmann::json& faults) const {
    admin("PUT", "/_test/faults", faults.dump());
  }
  void clear_faults() const { admin("DELETE", "/_test/faults"); }

  // The daemon's status, or nothing while it does not answer.
  std::optional<nlohmann::json> status() const;
  // Waits until the daemon has in the kernel what the server has now. Throws, with the daemon's
  // log, when it takes longer.
  nlohmann::json settle(std::chrono::milliseconds patience = std::chrono::seconds(30)) const;
  std::string daemon_log() const;
  // Waits until the daemon's log has this text so many times.
  void await_log(const std::string& text, std::size_t times = 1) const;
  // What the daemon answers on one of its ports, from the node itself.
  lab::HttpAnswer get(int port, const std::string& path) const;
  const std::string& directory() const { return directory_; }
  std::string program(const std::string& name) const;  // its path

  // Runs a shell command in the node's namespace; its output. Throws when it fails.
  std::string on_node(const std::string& command) const;

 private:
  void wait_for(const std::function<bool()>& condition, const std::string& what) const;

  Options options_;
  std::string directory_;
  lab::Lab lab_;
  std::optional<lab::Process> server_;
  std::optional<lab::Process> daemon_;
};

// Objects in namespace "ns". The port is named "p" on both sides.
nlohmann::json service(
    const std::string& name, const std::vector<std::string>& cluster_ips, int port = 80);
nlohmann::json slice(
    const std::string& service_name,
    const std::string& family,
    const std::vector<std::string>& addresses,
    int port = 8080);
// The endpoint `index` of a slice turns ready or not.
void set_ready(nlohmann::json& slice, std::size_t index, bool ready);

}  // namespace shunt::test
