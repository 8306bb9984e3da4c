#include "base/backoff.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

namespace shunt {

Random seeded_random() {
  auto engine = std::make_shared<std::mt19937_64>(std::random_device{}());
  return [engine] { return std::uniform_real_distribution<double>(0.0, 1.0)(*engine); };
}

Backoff::Backoff(Shape shape, Random random) : shape_(shape), random_(std::move(random)) {}

Millis Backoff::next(Clock::time_point now) {
  if (delay_.count() == 0 || now - started_ > shape_.restart_after) {
    started_ = now;
    delay_ = shape_.first;
  }
  const Millis base = std::min(delay_, shape_.cap);
  delay_ = std::min(delay_ * 2, shape_.cap);
  return base + Millis(static_cast<Millis::rep>(static_cast<double>(base.count()) * random_()));
}

void Backoff::reset() { delay_ = Millis{0}; }

}  // namespace shunt
