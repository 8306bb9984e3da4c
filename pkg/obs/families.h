// Inside obs: metric families that are made at scrape time.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/ip_address.h"
#include "obs/metrics.h"

namespace shunt::obs {

using LabelList = std::vector<std::pair<std::string, std::string>>;
using MetricFamilies = std::vector<prometheus::MetricFamily>;

// kube-proxy's metrics are all ALPHA, and Kubernetes writes that into their help.
inline std::string help_of(std::string_view name, const char* help) {
  return (name.starts_with("kubeproxy_") ? "[ALPHA] " : "") + std::string(help);
}

class FamilyOf {
 public:
  FamilyOf(const char* name, const char* help, prometheus::MetricType type) {
    family_.name = name;
    family_.help = help_of(name, help);
    family_.type = type;
  }
  void add(double value, const LabelList& labels = {});
  // Unless it is empty.
  void move_to(MetricFamilies& out) {
    if (!family_.metric.empty()) {
      out.push_back(std::move(family_));
    }
  }

 private:
  prometheus::MetricFamily family_;
};

void add_supplied(
    const Suppliers& suppliers, const std::vector<net::Family>& families, MetricFamilies& out);
void add_checks(const Suppliers& suppliers, MetricFamilies& out);
void add_build(const Build& build, MetricFamilies& out);
void add_process(MetricFamilies& out);  // process_*

}  // namespace shunt::obs
