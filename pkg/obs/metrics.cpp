#include "obs/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "obs/buckets.h"
#include "obs/families.h"

namespace shunt::obs {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr std::array<std::string_view, 7> kDriftKinds{
    "table", "set", "chain", "rule", "element", "routing-rule", "unknown"};

double unix_now() { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

double number(std::uint64_t value) { return static_cast<double>(value); }

prometheus::Labels label(const char* name, std::string_view value) {
  return {{name, std::string(value)}};
}

std::string serialized(MetricFamilies families) {
  std::ranges::sort(families, {}, &prometheus::MetricFamily::name);
  for (prometheus::MetricFamily& family : families) {
    std::ranges::sort(family.metric, {}, &prometheus::ClientMetric::label);
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace

class Metrics::Impl {
 public:
  Impl(Build build, std::vector<net::Family> families, Suppliers suppliers)
      : build_(std::move(build)), served_(std::move(families)), suppliers_(std::move(suppliers)) {
    for (const net::Family family : served_) {
      children_.at(static_cast<std::size_t>(family)) =
          std::make_unique<OfFamily>(*this, std::string(net::to_string(family)));
    }
    // From the start at 0: increase() does not see a series that begins at 1.
    for (const char* resource : {"services", "endpointslices", "nodes", "servicecidrs"}) {
      (void)unreadable.Add({{"resource", resource}});
    }
    for (const char* result : {"success", "failure"}) {
      (void)reloads.Add({{"result", result}});
    }
  }

  // The children of one family; null when it is not served.
  struct OfFamily {
    OfFamily(Impl& all, const std::string& ip_family);

    Histogram& sync;
    Histogram& full;
    Histogram& partial;
    Gauge& last;
    Gauge& last_queued;
    Histogram& programming;
    Gauge& internal_without_local;
    Gauge& external_without_local;
    Counter& failures;
    Counter& cleanup_failures;
    Histogram& conntrack;
    Histogram& transaction;
    Counter& messages;
    Counter& bytes;
    Counter& elements;
    std::array<Counter*, kDriftKinds.size()> drift{};
  };
  OfFamily* of(net::Family family) { return children_[static_cast<std::size_t>(family)].get(); }

  std::string text() const {
    MetricFamilies all = registry_.Collect();
    // A family of which nothing was told yet has no line, not even its help.
    std::erase_if(
        all, [](const prometheus::MetricFamily& family) { return family.metric.empty(); });
    add_supplied(suppliers_, served_, all);
    add_build(build_, all);
    add_process(all);
    return serialized(std::move(all));
  }

  std::string slis() const {
    MetricFamilies all;
    add_checks(suppliers_, all);
    return serialized(std::move(all));
  }

 private:
  prometheus::Family<Histogram>& histogram(const char* name, const char* help) {
    return BuildHistogram().Name(name).Help(help_of(name, help)).Register(registry_);
  }
  prometheus::Family<Gauge>& gauge(const char* name, const char* help) {
    return BuildGauge().Name(name).Help(help_of(name, help)).Register(registry_);
  }
  prometheus::Family<Counter>& counter(const char* name, const char* help) {
    return BuildCounter().Name(name).Help(help_of(name, help)).Register(registry_);
  }

  const Build build_;
  const std::vector<net::Family> served_;
  const Suppliers suppliers_;
  prometheus::Registry registry_;

  prometheus::Family<Histogram>& sync_ =
      histogram("kubeproxy_sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds");
  prometheus::Family<Histogram>& full_ = histogram(
      "kubeproxy_sync_full_proxy_rules_duration_seconds",
      "SyncProxyRules latency in seconds for full resyncs");
  prometheus::Family<Histogram>& partial_ = histogram(
      "kubeproxy_sync_partial_proxy_rules_duration_seconds",
      "SyncProxyRules latency in seconds for partial resyncs");
  prometheus::Family<Gauge>& last_ = gauge(
      "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
      "The last time proxy rules were successfully synced");
  prometheus::Family<Gauge>& last_queued_ = gauge(
      "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
      "The last time a sync of proxy rules was queued");
  prometheus::Family<Histogram>& programming_ = histogram(
      "kubeproxy_network_programming_duration_seconds",
      "In Cluster Network Programming Latency in seconds");
  prometheus::Family<Gauge>& without_local_ = gauge(
      "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
      "Number of services with a Local traffic policy and no endpoints");
  prometheus::Family<Counter>& failures_ = counter(
      "kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
      "Cumulative proxy nftables sync failures");
  prometheus::Family<Counter>& cleanup_failures_ = counter(
      "kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total",
      "Cumulative proxy nftables cleanup failures");
  prometheus::Family<Histogram>& conntrack_ = histogram(
      "kubeproxy_conntrack_reconciler_sync_duration_seconds",
      "ReconcileConntrackFlowsLatency latency in seconds");
  prometheus::Family<Histogram>& transaction_ = histogram(
      "kubeshunt_transaction_duration_seconds",
      "How long the kernel took for a transaction that changed something");
  prometheus::Family<Counter>& messages_ =
      counter("kubeshunt_transaction_messages_total", "Netlink messages in those transactions");
  prometheus::Family<Counter>& bytes_ =
      counter("kubeshunt_transaction_bytes_total", "Bytes of netlink in those transactions");
  prometheus::Family<Counter>& elements_ = counter(
      "kubeshunt_transaction_elements_total",
      "Elements of sets and maps that those transactions added or deleted");

  std::array<std::unique_ptr<OfFamily>, 2> children_;

 public:
  Gauge& endpoints_pending = gauge(
                                 "kubeproxy_sync_proxy_rules_endpoint_changes_pending",
                                 "Pending proxy rules Endpoint changes")
                                 .Add({});
  Counter& endpoints_total = counter(
                                 "kubeproxy_sync_proxy_rules_endpoint_changes_total",
                                 "Cumulative proxy rules Endpoint changes")
                                 .Add({});
  Gauge& services_pending = gauge(
                                "kubeproxy_sync_proxy_rules_service_changes_pending",
                                "Pending proxy rules Service changes")
                                .Add({});
  Counter& services_total = counter(
                                "kubeproxy_sync_proxy_rules_service_changes_total",
                                "Cumulative proxy rules Service changes")
                                .Add({});
  prometheus::Family<Gauge>& iptables_total = gauge(
      "kubeproxy_sync_proxy_rules_iptables_total",
      "Total number of iptables rules owned by kube-proxy");
  prometheus::Family<Gauge>& iptables_last = gauge(
      "kubeproxy_sync_proxy_rules_iptables_last",
      "Number of iptables rules written by kube-proxy in last sync");
  prometheus::Family<Counter>& restore_failures = counter(
      "kubeproxy_sync_proxy_rules_iptables_restore_failures_total",
      "Cumulative proxy iptables restore failures");
  prometheus::Family<Counter>& partial_restore_failures = counter(
      "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total",
      "Cumulative proxy iptables partial restore failures");
  prometheus::Family<Counter>& drift = counter(
      "kubeshunt_drift_repairs_total", "Foreign changes of our kernel state that were repaired");
  prometheus::Family<Counter>& unreadable = counter(
      "kubeshunt_unreadable_objects_total",
      "Objects of the API server that could not be read, and were left out");
  prometheus::Family<Gauge>& first_sync = gauge(
      "kubeshunt_first_sync_duration_seconds",
      "From the start of the process until the first complete state was written");
  prometheus::Family<Counter>& reloads =
      counter("kubeshunt_config_reloads_total", "Times that the configuration was read again");
  prometheus::Family<Counter>& requests = counter(
      "rest_client_requests_total",
      "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.");
  prometheus::Family<Histogram>& request_duration = histogram(
      "rest_client_request_duration_seconds",
      "[ALPHA] Request latency in seconds. Broken down by verb, and host.");
};

Metrics::Impl::OfFamily::OfFamily(Impl& all, const std::string& ip_family)
    : sync(all.sync_.Add({{"ip_family", ip_family}}, sync_buckets())),
      full(all.full_.Add({{"ip_family", ip_family}}, sync_buckets())),
      partial(all.partial_.Add({{"ip_family", ip_family}}, sync_buckets())),
      last(all.last_.Add({{"ip_family", ip_family}})),
      last_queued(all.last_queued_.Add({{"ip_family", ip_family}})),
      programming(all.programming_.Add({{"ip_family", ip_family}}, programming_buckets())),
      internal_without_local(
          all.without_local_.Add({{"ip_family", ip_family}, {"traffic_policy", "internal"}})),
      external_without_local(
          all.without_local_.Add({{"ip_family", ip_family}, {"traffic_policy", "external"}})),
      failures(all.failures_.Add({{"ip_family", ip_family}})),
      cleanup_failures(all.cleanup_failures_.Add({{"ip_family", ip_family}})),
      conntrack(all.conntrack_.Add({{"ip_family", ip_family}}, sync_buckets())),
      transaction(all.transaction_.Add({{"ip_family", ip_family}}, transaction_buckets())),
      messages(all.messages_.Add({{"ip_family", ip_family}})),
      bytes(all.bytes_.Add({{"ip_family", ip_family}})),
      elements(all.elements_.Add({{"ip_family", ip_family}})) {
  for (std::size_t kind = 0; kind < kDriftKinds.size(); ++kind) {
    drift.at(kind) =
        &all.drift.Add({{"ip_family", ip_family}, {"kind", std::string(kDriftKinds.at(kind))}});
  }
}

Metrics::Metrics(const Build& build, const std::vector<net::Family>& families, Suppliers suppliers)
    : impl_(std::make_unique<Impl>(build, families, std::move(suppliers))) {}

Metrics::~Metrics() = default;

void Metrics::synced(net::Family family, const Sync& sync) {
  if (auto* here = impl_->of(family)) {
    here->sync.Observe(sync.took.count());
    (sync.full ? here->full : here->partial).Observe(sync.took.count());
    if (sync.succeeded) {
      here->last.Set(unix_now());
    } else if (!sync.by_iptables) {
      here->failures.Increment();
    } else {
      const prometheus::Labels labels = label("ip_family", net::to_string(family));
      impl_->restore_failures.Add(labels).Increment();
      if (!sync.full) {
        impl_->partial_restore_failures.Add(labels).Increment();
      }
    }
  }
}

void Metrics::iptables_rules(net::Family family, const IptablesRules& rules) {
  const auto set = [&](const char* table, std::size_t total, std::size_t last) {
    prometheus::Labels labels = label("ip_family", net::to_string(family));
    labels.emplace("table", table);
    impl_->iptables_total.Add(labels).Set(number(total));
    impl_->iptables_last.Add(labels).Set(number(last));
  };
  set("filter", rules.filter, rules.filter_written);
  set("nat", rules.nat, rules.nat_written);
}

void Metrics::queued(net::Family family) {
  if (auto* here = impl_->of(family)) {
    here->last_queued.Set(unix_now());
  }
}

void Metrics::programmed(net::Family family, Seconds latency) {
  if (auto* here = impl_->of(family)) {
    here->programming.Observe(latency.count());
  }
}

void Metrics::service_changes(std::uint64_t count) {
  impl_->services_pending.Increment(number(count));
  impl_->services_total.Increment(number(count));
}

void Metrics::endpoint_changes(std::uint64_t count) {
  impl_->endpoints_pending.Increment(number(count));
  impl_->endpoints_total.Increment(number(count));
}

void Metrics::changes_taken() {
  impl_->services_pending.Set(0);
  impl_->endpoints_pending.Set(0);
}

void Metrics::without_local(net::Family family, std::size_t internal, std::size_t external) {
  if (auto* here = impl_->of(family)) {
    here->internal_without_local.Set(number(internal));
    here->external_without_local.Set(number(external));
  }
}

void Metrics::committed(net::Family family, const Transaction& transaction) {
  if (auto* here = impl_->of(family)) {
    here->transaction.Observe(transaction.took.count());
    here->messages.Increment(number(transaction.messages));
    here->bytes.Increment(number(transaction.bytes));
    here->elements.Increment(number(transaction.elements));
  }
}

void Metrics::cleanup_failed(net::Family family) {
  if (auto* here = impl_->of(family)) {
    here->cleanup_failures.Increment();
  }
}

void Metrics::conntrack_pass(net::Family family, Seconds took) {
  if (auto* here = impl_->of(family)) {
    here->conntrack.Observe(took.count());
  }
}

void Metrics::drift_repaired(net::Family family, std::string_view kind, std::uint64_t count) {
  if (auto* here = impl_->of(family)) {
    const auto at = std::ranges::find(kDriftKinds.begin(), kDriftKinds.end() - 1, kind);
    here->drift.at(static_cast<std::size_t>(at - kDriftKinds.begin()))->Increment(number(count));
  }
}

void Metrics::unreadable(std::string_view resource, std::uint64_t count) {
  impl_->unreadable.Add(label("resource", resource)).Increment(number(count));
}

void Metrics::first_sync(Seconds took) { impl_->first_sync.Add({}).Set(took.count()); }

void Metrics::config_reloaded(bool succeeded) {
  impl_->reloads.Add(label("result", succeeded ? "success" : "failure")).Increment();
}

void Metrics::request_done(
    std::string_view code,
    std::string_view method,
    std::string_view verb,
    std::string_view host,
    Seconds took) {
  prometheus::Labels labels = label("host", host);
  prometheus::Labels of_verb = labels;
  labels.emplace("code", code);
  labels.emplace("method", method);
  of_verb.emplace("verb", verb);
  impl_->requests.Add(labels).Increment();
  impl_->request_duration.Add(of_verb, request_buckets()).Observe(took.count());
}

std::string Metrics::text() const { return impl_->text(); }

std::string Metrics::slis() const { return impl_->slis(); }

}  // namespace shunt::obs
