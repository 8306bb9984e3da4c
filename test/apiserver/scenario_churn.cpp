// Making a cluster, and endpoints that flip.
#include "test/apiserver/endpoint_group.h"
#include "test/apiserver/endpoint_text.h"
#include "test/apiserver/json_text.h"
#include "test/apiserver/load_names.h"
#include "test/apiserver/scenario.h"

namespace shunt::test_api {
namespace {

constexpr const char* kManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr const char* kController = "endpointslice-controller.k8s.io";

class ClusterScenario : public Scenario {
 public:
  ClusterScenario(Store& store, ClusterObjects objects, bool encode)
      : store_(store), objects_(std::move(objects)), encode_(encode) {}

  std::string_view name() const override { return "objects"; }

  std::optional<std::chrono::nanoseconds> due() const override {
    return next_ <= objects_.spec().services ? std::optional(std::chrono::nanoseconds(0))
                                             : std::nullopt;
  }

  // What every cluster has comes first.
  std::size_t step() override {
    const auto made = next_ == 0 ? objects_.basics() : objects_.service(next_ - 1);
    ++next_;
    for (const LoadObject& object : made) {
      put(object);
    }
    return made.size();
  }

 private:
  void put(const LoadObject& object) {
    const auto table = resource_of_kind(object.kind);
    const std::string_view metadata = member(object.text, "metadata").value_or("{}");
    const std::string key =
        object_key(text_member(metadata, "namespace"), text_member(metadata, "name"));
    const auto change = store_.change(
        table->index, key, [&](const ObjectPtr&, std::uint64_t next) -> Answer<ObjectPtr> {
          return make_object(object.text, next);
        });
    if (encode_ && change) {
      // Now, so that the first list does not have to wait for all of them.
      (void)change->after->protobuf(*table->resource->schema);
    }
  }

  Store& store_;
  const ClusterObjects objects_;
  const bool encode_;
  std::size_t next_ = 0;
};

class ChurnScenario : public Scenario {
 public:
  ChurnScenario(Store& store, ChurnSpec spec, std::uint64_t seed, std::vector<std::string> keys)
      : store_(store), spec_(spec), seed_(seed), keys_(std::move(keys)) {}

  std::string_view name() const override { return "churn"; }

  std::optional<std::chrono::nanoseconds> due() const override {
    const double at = static_cast<double>(next_) / spec_.rate;
    return at < spec_.seconds ? std::optional(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::duration<double>(at)))
                              : std::nullopt;
  }

  std::size_t step() override {
    const std::uint64_t random = mixed(seed_, next_++);
    const std::string& key = keys_[random % keys_.size()];
    const ObjectPtr slice = store_.find(resource_of_kind("EndpointSlice")->index, key);
    if (!slice) {
      return 0;  // somebody deleted it
    }
    const auto endpoints = elements(member(slice->body, "endpoints").value_or(""));
    if (endpoints.empty()) {
      return 0;
    }
    const std::size_t index = (random >> 32U) % endpoints.size();
    EndpointConditions conditions = conditions_of(endpoints[index]);
    conditions.ready = !conditions.ready;
    conditions.serving = conditions.ready;
    const auto text = with_endpoint_conditions(slice->body, index, conditions);
    return text && write_slice(store_, key, *text, unix_now()) ? 1 : 0;
  }

 private:
  Store& store_;
  const ChurnSpec spec_;
  const std::uint64_t seed_;
  const std::vector<std::string> keys_;
  std::size_t next_ = 0;
};

}  // namespace

ScenarioPtr make_cluster(Store& store, ClusterObjects objects, bool encode) {
  return std::make_unique<ClusterScenario>(store, std::move(objects), encode);
}

Result<ScenarioPtr> make_churn(Store& store, ChurnSpec spec, std::uint64_t seed) {
  std::vector<std::string> keys;
  const Store::Listing listing = store.list(resource_of_kind("EndpointSlice")->index);
  for (const ObjectPtr& slice : *listing.objects) {
    const auto manager = slice->labels.find(kManagedBy);
    if (manager != slice->labels.end() && manager->second == kController) {
      keys.push_back(key_of(*slice));
    }
  }
  if (keys.empty()) {
    return fail(Errc::NotFound, "no EndpointSlice of the controller's");
  }
  return std::make_unique<ChurnScenario>(store, spec, seed, std::move(keys));
}

}  // namespace shunt::test_api
