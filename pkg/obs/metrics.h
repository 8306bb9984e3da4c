// What the daemon counts, as Prometheus reads it (spec/conntrack-and-metrics.md §2).
//
// Names, help texts, labels and buckets of kubeproxy_* are kube-proxy's, so that dashboards go on
// working; a metric that only some of its modes have is there in those (deploy/monitoring says
// which). Ours are kubeshunt_*.
//
// Two ways in. What happens is told by a method: any thread, no string, no look-up, some ten
// nanoseconds (but those marked as rare). What somebody else counts or knows already is asked for
// at scrape time through Suppliers, on the thread that calls text().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/ip_address.h"

namespace shunt::obs {

using Seconds = std::chrono::duration<double>;

struct Build {
  std::string version;  // "0.1.0"
  std::string commit;
  std::string date;
};

// Each may be empty: its metrics are then absent. Called at every scrape; must not wait. What they
// use outlives the Metrics.
struct Suppliers {
  using Answers = std::map<int, std::uint64_t>;  // by HTTP status
  struct Conntrack {
    std::uint64_t passes = 0;
    std::uint64_t failures = 0;
    std::uint64_t scanned = 0;
    std::uint64_t deleted = 0;
  };
  // Of one family, now.
  struct State {
    std::size_t frontends = 0;
    std::size_t set_aside = 0;  // frontends that the kernel refused
    std::size_t conflicts = 0;  // claims of an address that another Service has
    bool in_sync = false;
  };
  struct Resource {
    std::string name;                    // "services"
    std::optional<Seconds> contact_age;  // since the API server was last heard of it
    std::uint64_t lists = 0;
    std::uint64_t watches = 0;
  };
  struct Connections {  // new connections of one service port, counted by the kernel
    std::string name_space;
    std::string service;
    std::string port_name;
    std::string protocol;   // "TCP"
    std::string ip_family;  // "IPv4"
    std::uint64_t count = 0;
  };
  // A health check of ours, for /metrics/slis.
  struct Check {
    std::string name;  // "ping"
    std::string type;  // "healthz"
    bool healthy = false;
    std::uint64_t successes = 0;
    std::uint64_t errors = 0;
  };

  std::function<Answers()> healthz_answers = {};
  std::function<Answers()> livez_answers = {};
  std::function<Conntrack(net::Family)> conntrack = {};
  std::function<State(net::Family)> state = {};
  std::function<std::vector<Resource>()> resources = {};
  // How many there may be is the supplier's to limit. Two of the same labels are added up.
  std::function<std::vector<Connections>()> connections = {};
  std::function<std::optional<Seconds>()> snapshot_age = {};
  std::function<std::vector<Check>()> checks = {};
};

class Metrics {
 public:
  // `families`: those that the daemon serves; what is told of another one is dropped.
  Metrics(const Build& build, const std::vector<net::Family>& families, Suppliers suppliers);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // One run for one family.
  struct Sync {
    Seconds took{};
    bool full = false;  // looked at everything; else at what changed
    bool succeeded = false;
    bool by_iptables = false;  // a failure is one of iptables-restore, else one of nftables
  };
  void synced(net::Family family, const Sync& sync);
  // In the iptables mode alone: rules of ours, and those that the last run wrote. Rare.
  struct IptablesRules {
    std::size_t filter = 0;
    std::size_t nat = 0;
    std::size_t filter_written = 0;
    std::size_t nat_written = 0;
  };
  void iptables_rules(net::Family family, const IptablesRules& rules);
  void queued(net::Family family);  // a run was asked for; also once at the start
  // From the change of an endpoint (its trigger time) until it was in the data path.
  void programmed(net::Family family, Seconds latency);
  // Objects that came, and the moment when a run took them all.
  void service_changes(std::uint64_t count);
  void endpoint_changes(std::uint64_t count);
  void changes_taken();
  // Service ports with policy Local that have endpoints, none of them here.
  void without_local(net::Family family, std::size_t internal, std::size_t external);

  // One transaction with the kernel that changed something.
  struct Transaction {
    Seconds took{};
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t elements = 0;
  };
  void committed(net::Family family, const Transaction& transaction);
  void cleanup_failed(net::Family family);
  void conntrack_pass(net::Family family, Seconds took);

  // Foreign changes of our kernel state: "table", "set", "chain", "rule", "element"; any other word
  // counts as "unknown".
  void drift_repaired(net::Family family, std::string_view kind, std::uint64_t count = 1);

  // Rare: these look their labels up.
  void unreadable(std::string_view resource, std::uint64_t count = 1);
  void first_sync(Seconds took);
  void config_reloaded(bool succeeded);
  // A request to the API server: code "200" or "<error>", method "GET", verb "LIST" or "GET", host
  // "10.0.0.1:6443". A watch lasts until its response began.
  void request_done(
      std::string_view code,
      std::string_view method,
      std::string_view verb,
      std::string_view host,
      Seconds took);

  std::string text() const;  // of /metrics: the text format, version 0.0.4
  std::string slis() const;  // of /metrics/slis

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shunt::obs
