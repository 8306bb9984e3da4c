#include <map>

#include "obs/families.h"

namespace shunt::obs {
namespace {

using prometheus::MetricType;

std::string word(net::Family family) { return std::string(net::to_string(family)); }

double number(std::uint64_t value) { return static_cast<double>(value); }

void add_answers(
    const std::function<Suppliers::Answers()>& supplier,
    const char* name,
    const char* help,
    MetricFamilies& out) {
  FamilyOf family(name, help, MetricType::Counter);
  if (supplier) {
    for (const auto& [status, count] : supplier()) {
      family.add(number(count), {{"code", std::to_string(status)}});
    }
  }
  family.move_to(out);
}

void add_conntrack(
    const Suppliers& suppliers, const std::vector<net::Family>& families, MetricFamilies& out) {
  FamilyOf deleted(
      "kubeproxy_conntrack_reconciler_deleted_entries_total",
      "Cumulative conntrack flows deleted by conntrack reconciler",
      MetricType::Counter);
  FamilyOf failures(
      "kubeshunt_conntrack_failures_total",
      "Passes over the connection tracking table that failed, and are tried again",
      MetricType::Counter);
  FamilyOf scanned(
      "kubeshunt_conntrack_scanned_entries_total",
      "Tracked flows that were looked at",
      MetricType::Counter);
  for (const net::Family family : families) {
    const Suppliers::Conntrack counters = suppliers.conntrack(family);
    const LabelList labels{{"ip_family", word(family)}};
    deleted.add(number(counters.deleted), labels);
    failures.add(number(counters.failures), labels);
    scanned.add(number(counters.scanned), labels);
  }
  deleted.move_to(out);
  failures.move_to(out);
  scanned.move_to(out);
}

void add_state(
    const Suppliers& suppliers, const std::vector<net::Family>& families, MetricFamilies& out) {
  FamilyOf frontends(
      "kubeshunt_frontends",
      "Addresses with port and protocol that Services have, and NodePorts",
      MetricType::Gauge);
  FamilyOf set_aside(
      "kubeshunt_set_aside_frontends",
      "Frontends that the kernel refused, each alone",
      MetricType::Gauge);
  FamilyOf conflicts(
      "kubeshunt_address_conflicts",
      "Claims of a Service on an address and port that an older Service has",
      MetricType::Gauge);
  FamilyOf in_sync(
      "kubeshunt_in_sync",
      "1 when everything that was received is in the kernel",
      MetricType::Gauge);
  for (const net::Family family : families) {
    const Suppliers::State state = suppliers.state(family);
    const LabelList labels{{"ip_family", word(family)}};
    frontends.add(number(state.frontends), labels);
    set_aside.add(number(state.set_aside), labels);
    conflicts.add(number(state.conflicts), labels);
    in_sync.add(state.in_sync ? 1 : 0, labels);
  }
  frontends.move_to(out);
  set_aside.move_to(out);
  conflicts.move_to(out);
  in_sync.move_to(out);
}

void add_resources(const Suppliers& suppliers, MetricFamilies& out) {
  FamilyOf age(
      "kubeshunt_api_contact_age_seconds",
      "Since the API server was last heard of a resource: an object, a bookmark or a list",
      MetricType::Gauge);
  FamilyOf lists("kubeshunt_api_lists_total", "Complete lists of a resource", MetricType::Counter);
  FamilyOf watches("kubeshunt_api_watches_total", "Watches of a resource", MetricType::Counter);
  for (const Suppliers::Resource& resource : suppliers.resources()) {
    const LabelList labels{{"resource", resource.name}};
    if (resource.contact_age) {
      age.add(resource.contact_age->count(), labels);
    }
    lists.add(number(resource.lists), labels);
    watches.add(number(resource.watches), labels);
  }
  age.move_to(out);
  lists.move_to(out);
  watches.move_to(out);
}

// A page with the same labels twice is refused as a whole, so those are added up.
void add_connections(const Suppliers& suppliers, MetricFamilies& out) {
  std::map<LabelList, std::uint64_t> sums;
  for (const Suppliers::Connections& one : suppliers.connections()) {
    sums[{
        {"namespace", one.name_space},
        {"service", one.service},
        {"port_name", one.port_name},
        {"protocol", one.protocol},
        {"ip_family", one.ip_family}}] += one.count;
  }
  FamilyOf family(
      "kubeshunt_service_new_connections_total",
      "New connections to a port of a Service on this node",
      MetricType::Counter);
  for (const auto& [labels, count] : sums) {
    family.add(number(count), labels);
  }
  family.move_to(out);
}

void add_age(
    const std::function<std::optional<Seconds>()>& supplier,
    const char* name,
    const char* help,
    MetricFamilies& out) {
  if (const auto age = supplier ? supplier() : std::nullopt) {
    FamilyOf family(name, help, MetricType::Gauge);
    family.add(age->count());
    family.move_to(out);
  }
}

}  // namespace

void FamilyOf::add(double value, const LabelList& labels) {
  prometheus::ClientMetric metric;
  for (const auto& [name, text] : labels) {
    metric.label.push_back({name, text});
  }
  (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  family_.metric.push_back(std::move(metric));
}

void add_supplied(
    const Suppliers& suppliers, const std::vector<net::Family>& families, MetricFamilies& out) {
  add_answers(
      suppliers.healthz_answers,
      "kubeproxy_proxy_healthz_total",
      "Cumulative proxy healthz HTTP status",
      out);
  add_answers(
      suppliers.livez_answers,
      "kubeproxy_proxy_livez_total",
      "Cumulative proxy livez HTTP status",
      out);
  if (suppliers.conntrack) {
    add_conntrack(suppliers, families, out);
  }
  if (suppliers.state) {
    add_state(suppliers, families, out);
  }
  if (suppliers.resources) {
    add_resources(suppliers, out);
  }
  if (suppliers.connections) {
    add_connections(suppliers, out);
  }
  add_age(
      suppliers.snapshot_age,
      "kubeshunt_snapshot_age_seconds",
      "Age of the state on disk that a start without the API server would use",
      out);
}

void add_checks(const Suppliers& suppliers, MetricFamilies& out) {
  if (!suppliers.checks) {
    return;
  }
  FamilyOf now(
      "kubernetes_healthcheck",
      "[STABLE] This metric records the result of a single healthcheck.",
      MetricType::Gauge);
  FamilyOf totals(
      "kubernetes_healthchecks_total",
      "[STABLE] This metric records the results of all healthcheck.",
      MetricType::Counter);
  for (const Suppliers::Check& check : suppliers.checks()) {
    now.add(check.healthy ? 1 : 0, {{"name", check.name}, {"type", check.type}});
    const auto total = [&](const char* status, std::uint64_t count) {
      if (count != 0) {
        totals.add(number(count), {{"name", check.name}, {"status", status}, {"type", check.type}});
      }
    };
    total("success", check.successes);
    total("error", check.errors);
  }
  now.move_to(out);
  totals.move_to(out);
}

void add_build(const Build& build, MetricFamilies& out) {
  FamilyOf info(
      "kubernetes_build_info",
      "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git "
      "commit, "
      "git tree state, build date, Go version, and compiler from which Kubernetes was built, and "
      "platform on which it is running.",
      MetricType::Gauge);
#if defined(__x86_64__)
  constexpr const char* kPlatform = "linux/amd64";
#elif defined(__aarch64__)
  constexpr const char* kPlatform = "linux/arm64";
#else
  constexpr const char* kPlatform = "linux";
#endif
  const std::size_t dot = build.version.find('.');
  const std::string major = build.version.substr(0, dot);
  const std::string rest = dot == std::string::npos ? "" : build.version.substr(dot + 1);
  info.add(
      1,
      {{"build_date", build.date},
       {"compiler", "g++"},
       {"git_commit", build.commit},
       {"git_tree_state", ""},
       {"git_version", "v" + build.version},
       {"go_version", ""},
       {"major", major},
       {"minor", rest.substr(0, rest.find('.'))},
       {"platform", kPlatform}});
  info.move_to(out);
}

}  // namespace shunt::obs
