// Pods that are replaced: all those of a Service, or all those of a zone.
#include <algorithm>
#include <map>
#include <set>

#include "test/apiserver/endpoint_group.h"
#include "test/apiserver/endpoint_text.h"
#include "test/apiserver/json_text.h"
#include "test/apiserver/load_names.h"
#include "test/apiserver/scenario.h"

namespace shunt::test_api {
namespace {

using Nanoseconds = std::chrono::nanoseconds;
using Keys = std::vector<std::string>;

constexpr const char* kServiceName = "kubernetes.io/service-name";
constexpr EndpointConditions kReady{true, true, false};
constexpr EndpointConditions kTerminating{false, true, true};

Nanoseconds to_nanoseconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

// The pod that takes the place of another: the same one in every address family.
std::string new_pod(const std::string& pod, std::uint64_t seed) {
  const std::string base = pod.substr(0, pod.rfind('-', pod.rfind('-') - 1));
  return base + "-" + suffix_of(mixed(seed, base), 10) + "-" + suffix_of(mixed(seed, pod), 5);
}

// The keys of slices by Service and address type.
std::map<std::string, Keys> groups_of(
    Store& store, const std::function<bool(const Object&)>& wanted) {
  std::map<std::string, Keys> out;
  const Store::Listing listing = store.list(resource_of_kind("EndpointSlice")->index);
  for (const ObjectPtr& slice : *listing.objects) {
    const auto service = slice->labels.find(kServiceName);
    if (service != slice->labels.end() && wanted(*slice)) {
      const std::string type = text_member(slice->body, "addressType");
      out[object_key(slice->ns, service->second) + "/" + type].push_back(key_of(*slice));
    }
  }
  return out;
}

// A Deployment replaces its pods one after the other, the slice controller writes twice a second.
class RollingScenario : public Scenario {
 public:
  RollingScenario(
      Store& store,
      double seconds,
      std::uint64_t seed,
      PodNumbers next_pod,
      std::vector<Keys> groups)
      : store_(store), seed_(seed), next_pod_(std::move(next_pod)), groups_(std::move(groups)) {
    std::set<std::string> seen;
    for (const Keys& keys : groups_) {
      EndpointGroup(store, keys).for_each([&](const std::string& endpoint) {
        if (seen.insert(pod_of(endpoint)).second) {
          pods_.push_back(pod_of(endpoint));
        }
      });
    }
    plan(seconds);
  }

  std::string_view name() const override { return "rolling"; }

  std::optional<Nanoseconds> due() const override {
    return next_ < actions_.size() ? std::optional(batch_of(actions_[next_])) : std::nullopt;
  }

  std::size_t step() override {
    const Nanoseconds now = batch_of(actions_[next_]);
    Batch batch;
    for (; next_ < actions_.size() && batch_of(actions_[next_]) == now; ++next_) {
      note(actions_[next_], batch);
    }
    std::size_t writes = 0;
    for (Keys& keys : groups_) {
      EndpointGroup group(store_, keys);
      perform(batch, group);
      writes += group.commit(unix_now());
      keys = group.keys();
    }
    return writes;
  }

 private:
  enum class Kind : std::uint8_t { Add, Ready, Terminate, Remove };
  struct Action {
    Nanoseconds due{};
    Kind kind = Kind::Add;
    std::size_t pod = 0;
  };

  // A pod comes, is ready one step later when an old one begins to terminate, and that one is gone
  // two steps after that.
  void plan(double seconds) {
    const double step = seconds / static_cast<double>(pods_.size() + 3);
    const auto add = [&](std::size_t pod, std::size_t at, Kind kind) {
      actions_.push_back({to_nanoseconds(step * static_cast<double>(at)), kind, pod});
    };
    for (std::size_t pod = 0; pod < pods_.size(); ++pod) {
      add(pod, pod, Kind::Add);
      add(pod, pod + 1, Kind::Ready);
      add(pod, pod + 1, Kind::Terminate);
      add(pod, pod + 3, Kind::Remove);
    }
    std::ranges::stable_sort(actions_, {}, &Action::due);
  }

  // When the slice controller gets to it.
  static Nanoseconds batch_of(const Action& action) {
    constexpr Nanoseconds kBatch = std::chrono::milliseconds(500);
    return (action.due + kBatch - Nanoseconds(1)) / kBatch * kBatch;
  }

  // What happens at one time, by pod. In this order it comes to what the actions one by one come
  // to.
  struct Batch {
    std::map<std::string, std::string> successors;  // of old pods
    std::map<std::string, EndpointConditions> conditions;
    std::set<std::string> gone;
  };

  void note(const Action& action, Batch& batch) const {
    const std::string& old = pods_[action.pod];
    switch (action.kind) {
      case Kind::Add:
        batch.successors.emplace(old, new_pod(old, seed_));
        break;
      case Kind::Ready:
        batch.conditions.insert_or_assign(new_pod(old, seed_), kReady);
        break;
      case Kind::Terminate:
        batch.conditions.insert_or_assign(old, kTerminating);
        break;
      case Kind::Remove:
        batch.gone.insert(old);
        break;
    }
  }

  void perform(const Batch& batch, EndpointGroup& group) const {
    std::vector<std::string> added;
    group.for_each([&](const std::string& endpoint) {
      const auto found = batch.successors.find(pod_of(endpoint));
      if (found != batch.successors.end()) {
        const std::string address = pod_ip(group.address_type(), next_pod_());
        added.push_back(successor(endpoint, found->second, address));
      }
    });
    for (std::string& endpoint : added) {
      group.add(std::move(endpoint));
    }
    group.edit_each([&](const std::string& endpoint) {
      const auto found = batch.conditions.find(pod_of(endpoint));
      return found == batch.conditions.end() ? endpoint : with_conditions(endpoint, found->second);
    });
    group.remove_if(
        [&](const std::string& endpoint) { return batch.gone.contains(pod_of(endpoint)); });
  }

  Store& store_;
  const std::uint64_t seed_;
  const PodNumbers next_pod_;
  std::vector<Keys> groups_;
  std::vector<std::string> pods_;
  std::vector<Action> actions_;
  std::size_t next_ = 0;
};

// Each Service goes through three phases: its endpoints in the zone terminate while others come up
// elsewhere, those are ready, the old ones are gone. The Services begin one after the other.
class DrainScenario : public Scenario {
 public:
  struct Place {
    std::string node;
    std::string zone;
    auto operator<=>(const Place&) const = default;
  };
  DrainScenario(
      Store& store,
      const DrainSpec& spec,
      std::uint64_t seed,
      PodNumbers next_pod,
      std::vector<Keys> groups,
      std::vector<Place> places)
      : store_(store),
        zone_(json_string(spec.zone)),
        seed_(seed),
        next_pod_(std::move(next_pod)),
        groups_(std::move(groups)),
        places_(std::move(places)) {
    constexpr double kPhase = 0.1;  // of the whole time
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const double begin = spec.seconds * (1 - 2 * kPhase) * static_cast<double>(group) /
                           static_cast<double>(groups_.size());
      for (int phase = 0; phase < kPhases; ++phase) {
        steps_.push_back({to_nanoseconds(begin + spec.seconds * kPhase * phase), group, phase});
      }
    }
    std::ranges::stable_sort(steps_, {}, &Step::due);
  }

  std::string_view name() const override { return "drain"; }

  std::optional<Nanoseconds> due() const override {
    return next_ < steps_.size() ? std::optional(steps_[next_].due) : std::nullopt;
  }

  std::size_t step() override {
    const Step& now = steps_[next_++];
    EndpointGroup group(store_, groups_[now.group]);
    if (now.phase == 0) {
      begin(group);
    } else if (now.phase == 1) {
      group.edit_each([&](const std::string& endpoint) {
        const bool coming = !is_here(endpoint) && !conditions_of(endpoint).serving;
        return coming ? with_conditions(endpoint, kReady) : endpoint;
      });
    } else {
      group.remove_if([&](const std::string& endpoint) { return is_here(endpoint); });
    }
    const std::size_t writes = group.commit(unix_now());
    groups_[now.group] = group.keys();
    return writes;
  }

 private:
  static constexpr int kPhases = 3;
  struct Step {
    Nanoseconds due{};
    std::size_t group = 0;
    int phase = 0;
  };

  bool is_here(std::string_view endpoint) const { return member(endpoint, "zone") == zone_; }

  void begin(EndpointGroup& group) {
    std::vector<std::string> leaving;
    group.edit_each([&](const std::string& endpoint) {
      if (!is_here(endpoint) || conditions_of(endpoint).terminating) {
        return endpoint;
      }
      leaving.push_back(endpoint);
      return with_conditions(endpoint, kTerminating);
    });
    for (const std::string& endpoint : leaving) {
      group.add(moved(endpoint, pod_ip(group.address_type(), next_pod_())));
    }
  }

  std::string moved(const std::string& endpoint, const std::string& address) const {
    const std::string pod = pod_of(endpoint);
    const Place& place = places_[mixed(seed_, pod) % places_.size()];
    const std::string zone = json_string(place.zone);
    std::string out = successor(endpoint, new_pod(pod, seed_), address);
    out = with_member(out, "nodeName", json_string(place.node));
    out = with_member(out, "zone", zone);
    return member(out, "hints")
               ? with_member(out, "hints", R"({"forZones":[{"name":)" + zone + "}]}")
               : out;
  }

  Store& store_;
  const std::string zone_;  // as JSON
  const std::uint64_t seed_;
  const PodNumbers next_pod_;
  std::vector<Keys> groups_;
  const std::vector<Place> places_;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
};

// Nodes of other zones, as far as endpoints tell of them.
std::vector<DrainScenario::Place> other_places(Store& store, const std::string& zone) {
  constexpr std::size_t kEnough = 1000;
  std::set<DrainScenario::Place> out;
  const Store::Listing listing = store.list(resource_of_kind("EndpointSlice")->index);
  for (const ObjectPtr& slice : *listing.objects) {
    for (Elements each(member(slice->body, "endpoints").value_or("")); each.next();) {
      DrainScenario::Place place{
          text_member(each.value(), "nodeName"), text_member(each.value(), "zone")};
      if (!place.zone.empty() && place.zone != zone) {
        out.insert(std::move(place));
      }
    }
    if (out.size() >= kEnough) {
      break;
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace

Result<ScenarioPtr> make_rolling(
    Store& store, const RollingSpec& spec, std::uint64_t seed, PodNumbers next_pod) {
  std::vector<Keys> groups;
  for (auto& [name, keys] : groups_of(store, [&](const Object& slice) {
         return slice.ns == spec.ns && slice.labels.at(kServiceName) == spec.service;
       })) {
    groups.push_back(std::move(keys));
  }
  if (groups.empty()) {
    return fail(Errc::NotFound, "no EndpointSlice of " + spec.ns + "/" + spec.service);
  }
  return std::make_unique<RollingScenario>(
      store, spec.seconds, seed, std::move(next_pod), std::move(groups));
}

Result<ScenarioPtr> make_drain(
    Store& store, const DrainSpec& spec, std::uint64_t seed, PodNumbers next_pod) {
  auto places = other_places(store, spec.zone);
  if (places.empty()) {
    return fail(Errc::NotFound, "no endpoint in another zone than " + spec.zone);
  }
  const std::string here = R"("zone":)" + json_string(spec.zone);
  const auto all = groups_of(store, [](const Object&) { return true; });
  std::vector<Keys> groups;
  for (const auto& [name, keys] : all) {
    const bool leaves = std::ranges::any_of(keys, [&](const std::string& key) {
      const ObjectPtr slice = store.find(resource_of_kind("EndpointSlice")->index, key);
      return slice && slice->body.find(here) != std::string::npos;
    });
    if (leaves) {
      groups.push_back(keys);
    }
  }
  return std::make_unique<DrainScenario>(
      store, spec, seed, std::move(next_pod), std::move(groups), std::move(places));
}

}  // namespace shunt::test_api
