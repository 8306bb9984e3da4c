// Things that happen to a cluster: each scenario is a sequence of steps, and says when the next one
// is due. It does not wait and knows no clock but the one it is told, so a test runs it at once.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "test/apiserver/load_objects.h"
#include "test/apiserver/store.h"

namespace shunt::test_api {

class Scenario {
 public:
  virtual ~Scenario() = default;
  virtual std::string_view name() const = 0;
  // When the next step is due, since the start. Nothing: it is over.
  virtual std::optional<std::chrono::nanoseconds> due() const = 0;
  // Does the next step; answers how many objects it wrote.
  virtual std::size_t step() = 0;
};
using ScenarioPtr = std::unique_ptr<Scenario>;

// Makes the objects of a cluster, one Service a step, as fast as possible.
ScenarioPtr make_cluster(Store& store, ClusterObjects objects, bool encode);
// One endpoint of a random slice of the controller's flips a step.
Result<ScenarioPtr> make_churn(Store& store, ChurnSpec spec, std::uint64_t seed);
// `next_pod`: numbers for addresses that nobody has.
using PodNumbers = std::function<std::size_t()>;
Result<ScenarioPtr> make_rolling(
    Store& store, const RollingSpec& spec, std::uint64_t seed, PodNumbers next_pod);
Result<ScenarioPtr> make_drain(
    Store& store, const DrainSpec& spec, std::uint64_t seed, PodNumbers next_pod);

}  // namespace shunt::test_api
