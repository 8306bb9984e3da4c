#include "obs/buckets.h"

namespace shunt::obs {
namespace {

std::vector<double> doubling(double first, int count) {
  std::vector<double> out;
  double bound = first;
  for (int i = 0; i < count; ++i) {
    out.push_back(bound);
    bound *= 2;
  }
  return out;
}

void add_steps(std::vector<double>& out, int first, int last, int step) {
  for (int bound = first; bound <= last; bound += step) {
    out.push_back(bound);
  }
}

}  // namespace

std::vector<double> sync_buckets() { return doubling(0.001, 15); }

std::vector<double> programming_buckets() {
  std::vector<double> out{0.25, 0.5};
  add_steps(out, 1, 59, 1);
  add_steps(out, 60, 115, 5);
  add_steps(out, 120, 300, 30);
  return out;
}

std::vector<double> request_buckets() {
  return {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
}

std::vector<double> transaction_buckets() { return doubling(0.00005, 19); }

}  // namespace shunt::obs
