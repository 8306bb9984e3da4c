// What a run of the benchmark has found: rows, as a table for people and as JSON for everybody
// else. Pure.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/suite/samples.h"

namespace shunt::bench {

struct Target {
  std::string text;
  bool met = false;
};

struct Row {
  std::string what;
  std::string size;
  std::string unit;
  Samples measured = {};
  // What the median is divided by: the floor of the same run, or another row.
  std::string base_name = {};
  Samples base = {};
  Samples kube_proxy = {};  // the comparison; usually nobody named a kube-proxy
  std::vector<Target> targets = {};

  std::optional<double> ratio() const;
  void against(std::string name, Samples samples);

  void want_median_below(double limit);
  void want_p99_below(double limit);
  void want_largest_below(double limit);
  void want_ratio_below(double limit);
  void want_exactly(double value);  // every sample

  bool met() const;  // true when there is no target
};

struct Machine {
  unsigned cores = 0;
  std::string processor;
  std::string kernel;
  std::string commit;
  std::string build;
};

class Report {
 public:
  // The row stays where it is; more may be said of it later.
  Row& add(Row row);
  void skip(std::string what, std::string why);
  void fail(std::string what, std::string why);  // counts as missed

  const std::deque<Row>& rows() const { return rows_; }
  Row* find(const std::string& what, const std::string& size);
  std::size_t missed() const;

  std::string table(const Machine& machine) const;
  nlohmann::json json(const Machine& machine) const;

 private:
  struct Skipped {  // or failed
    std::string what;
    std::string why;
  };
  std::deque<Row> rows_;
  std::vector<Skipped> skipped_;
  std::vector<Skipped> failed_;
};

}  // namespace shunt::bench
