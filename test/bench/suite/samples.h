// Figures of one kind, and what is said of them. Pure.
#pragma once

#include <string>
#include <vector>

namespace shunt::bench {

class Samples {
 public:
  Samples() = default;
  Samples(std::initializer_list<double> values) : values_(values) {}
  explicit Samples(std::vector<double> values) : values_(std::move(values)) {}

  void add(double value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  const std::vector<double>& values() const { return values_; }

  // The smallest value that at least `share` of them (0..1) do not exceed; 0 when there is none.
  double percentile(double share) const;
  double median() const { return percentile(0.5); }
  double p99() const { return percentile(0.99); }
  double largest() const { return percentile(1); }

 private:
  std::vector<double> values_;
};

// Three significant digits, without an exponent: "0.0123", "1.23", "123", "12345".
std::string three_digits(double value);

// 1000 -> "1k", 100000 -> "100k", 200 -> "200".
std::string short_count(std::size_t count);

}  // namespace shunt::bench
