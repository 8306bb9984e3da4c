#include "store/object_store.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

namespace shunt::store {
namespace {

using kube::ObjectKey;
using Keys = std::set<ObjectKey>;

kube::Service service(std::string name, std::string version = "1") {
  kube::Service s;
  s.meta.key = {"shop", std::move(name)};
  s.meta.resource_version = std::move(version);
  s.cluster_ip = "10.112.0.1";
  return s;
}

kube::EndpointSlice slice(std::string name, std::string owner, std::string version = "1") {
  kube::EndpointSlice s;
  s.meta.key = {"shop", std::move(name)};
  s.meta.resource_version = std::move(version);
  s.service_name = std::move(owner);
  s.address_type = "IPv4";
  return s;
}

template <typename T>
std::shared_ptr<const T> share(T object) {
  return std::make_shared<const T>(std::move(object));
}

std::vector<std::string> names(const std::vector<SlicePtr>& slices) {
  std::vector<std::string> names;
  names.reserve(slices.size());
  for (const SlicePtr& s : slices) {
    names.push_back(s->meta.key.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("an equal object touches nothing, another version does") {
  ObjectStore store;
  CHECK(store.upsert(share(service("web"))));
  CHECK(store.upsert(share(slice("web-1", "web"))));
  CHECK(store.take_changes().services == Keys{{"shop", "web"}});

  CHECK_FALSE(store.upsert(share(service("web"))));
  CHECK_FALSE(store.upsert(share(slice("web-1", "web"))));
  CHECK_FALSE(store.has_changes());

  CHECK(store.upsert(share(slice("web-1", "web", "2"))));
  const Changes changes = store.take_changes();
  CHECK(changes.services == Keys{{"shop", "web"}});
  CHECK(changes.slices_of == Keys{{"shop", "web"}});
}

TEST_CASE("the end of the Node's first list is news, whether it named one or not") {
  for (const bool named : {true, false}) {
    ObjectStore store;
    if (named) {
      store.upsert(share(kube::Node{}), 1);
      CHECK(store.take_changes().node);
    }
    store.nodes_listed();
    CHECK(store.take_changes().node);
    store.nodes_listed();
    CHECK_FALSE(store.has_changes());
  }
}

TEST_CASE("removing what is not held touches nothing") {
  ObjectStore store;
  CHECK_FALSE(store.remove_service({"shop", "web"}));
  CHECK_FALSE(store.remove_slice({"shop", "web-1"}));
  CHECK_FALSE(store.has_changes());
}

TEST_CASE("slices of a Service come sorted by name, and may come before it") {
  ObjectStore store;
  (void)store.upsert(share(slice("web-b", "web")));
  (void)store.upsert(share(slice("web-a", "web")));
  (void)store.upsert(share(slice("other-1", "other")));
  CHECK(names(store.slices_of({"shop", "web"})) == Names{"web-a", "web-b"});
  CHECK(store.service({"shop", "web"}) == nullptr);
  CHECK(store.slice_owners() == std::vector<ObjectKey>{{"shop", "other"}, {"shop", "web"}});
}

TEST_CASE("a slice whose label changes leaves its old Service, and both are touched") {
  ObjectStore store;
  (void)store.upsert(share(slice("s", "old")));
  (void)store.take_changes();

  CHECK(store.upsert(share(slice("s", "new", "2"))));
  CHECK(store.slices_of({"shop", "old"}).empty());
  CHECK(names(store.slices_of({"shop", "new"})) == Names{"s"});
  CHECK(store.take_changes().services == Keys{{"shop", "new"}, {"shop", "old"}});
  CHECK(store.slice_owners() == std::vector<ObjectKey>{{"shop", "new"}});
}

TEST_CASE("a slice that no Service can use counts as absent") {
  kube::EndpointSlice unowned = slice("s", "");
  kube::EndpointSlice headless = slice("s", "web");
  headless.has_headless_label = true;
  kube::EndpointSlice host_names = slice("s", "web");
  host_names.address_type = "FQDN";
  kube::EndpointSlice other_family = slice("s", "web");
  other_family.address_type = "IPv6";
  for (const kube::EndpointSlice& useless : {unowned, headless, host_names, other_family}) {
    ObjectStore store(0, {.ipv4 = true, .ipv6 = false});
    CHECK_FALSE(store.upsert(share(useless)));
    CHECK_FALSE(store.has_changes());

    (void)store.upsert(share(slice("s", "web")));
    (void)store.take_changes();
    CHECK(store.upsert(share(useless)));
    CHECK(store.slices_of({"shop", "web"}).empty());
    CHECK(store.take_changes().slices_of == Keys{{"shop", "web"}});
  }
}

TEST_CASE("trigger times are collected per Service until a slice of it goes") {
  const auto at = [](std::int64_t time, std::string version) {
    kube::EndpointSlice s = slice("s", "web", std::move(version));
    s.trigger_time_ns = time;
    return share(s);
  };
  const ObjectKey web{"shop", "web"};
  ObjectStore store(100);
  (void)store.upsert(at(100, "1"));  // not strictly later than the start
  (void)store.upsert(at(101, "2"));
  (void)store.upsert(at(103, "3"));
  (void)store.upsert(at(103, "3"));  // unchanged
  CHECK(
      store.take_changes().trigger_times_ns ==
      std::map<ObjectKey, std::vector<std::int64_t>>{{web, {101, 103}}});

  (void)store.upsert(at(104, "4"));
  (void)store.remove_slice({"shop", "s"});
  CHECK(store.take_changes().trigger_times_ns.empty());

  (void)store.remove_slice({"shop", "s"});
  (void)store.upsert(at(105, "5"));
  CHECK(store.take_changes().trigger_times_ns.at(web) == std::vector<std::int64_t>{105});
}

TEST_CASE("both Services and slices must have been listed before anything is complete") {
  ObjectStore store;
  store.slices_listed(1);
  CHECK_FALSE(store.complete());
  store.services_listed(1);
  CHECK(store.complete());
  CHECK_FALSE(store.node_listed());
  CHECK_FALSE(store.service_cidrs_known());
}

TEST_CASE("a Node counts as changed only for what we read, and outlives its object") {
  kube::Node node;
  node.meta = {{"", "edge-a"}, "uid", "1", 0};
  node.zone = "z1";
  ObjectStore store;
  store.upsert(share(node));
  store.nodes_listed();
  CHECK(store.node_listed());
  CHECK(store.take_changes().node);

  node.meta.resource_version = "2";
  store.upsert(share(node));
  CHECK_FALSE(store.take_changes().node);

  node.zone.reset();
  store.upsert(share(node));
  CHECK(store.take_changes().node);

  store.remove_node();
  store.nodes_listed();
  CHECK_FALSE(store.has_changes());
  REQUIRE(store.node() != nullptr);
  CHECK(store.node()->meta.resource_version == "2");
}

TEST_CASE("service ranges are the union of all ServiceCIDRs") {
  const auto cidr = [](std::string name, std::vector<std::string> ranges) {
    return share(kube::ServiceCidr{{{"", std::move(name)}, "", "", 0}, std::move(ranges)});
  };
  ObjectStore store;
  store.upsert(cidr("kubernetes", {"10.112.0.0/16", "fdc0::/112"}), 1);
  store.upsert(cidr("more", {"10.113.0.0/16"}), 1);
  store.service_cidrs_listed(1);
  CHECK(store.service_cidrs() == Names{"10.112.0.0/16", "10.113.0.0/16", "fdc0::/112"});
  CHECK(store.take_changes().service_cidrs);

  store.upsert(cidr("more", {"10.112.0.0/16"}), 1);
  store.remove_service_cidr({"", "nobody"});
  CHECK(store.service_cidrs() == Names{"10.112.0.0/16", "fdc0::/112"});
  CHECK(store.take_changes().service_cidrs);

  store.upsert(cidr("more", {"10.112.0.0/16"}), 2);
  store.service_cidrs_listed(2);
  CHECK(store.service_cidrs() == Names{"10.112.0.0/16"});
}

TEST_CASE("touching all touches every Service held") {
  ObjectStore store;
  (void)store.upsert(share(service("b")));
  (void)store.upsert(share(service("a")));
  (void)store.upsert(share(slice("s", "unknown")));
  (void)store.take_changes();
  store.touch_all_services();
  CHECK(store.take_changes().services == Keys{{"shop", "a"}, {"shop", "b"}});
  CHECK(store.service_keys() == std::vector<ObjectKey>{{"shop", "a"}, {"shop", "b"}});
}

// What a reader of the store can see.
struct View {
  std::map<ObjectKey, kube::Service> services;
  std::map<ObjectKey, std::vector<kube::EndpointSlice>> slices;
  bool operator==(const View&) const = default;
};

View view(const ObjectStore& store) {
  View view;
  for (const ObjectKey& key : store.service_keys()) {
    view.services.emplace(key, *store.service(key));
  }
  for (const ObjectKey& key : store.slice_owners()) {
    for (const SlicePtr& s : store.slices_of(key)) {
      view.slices[key].push_back(*s);
    }
  }
  return view;
}

// Some of a handful of objects, so that collisions, moves and repeats are common.
struct World {
  std::vector<ServicePtr> services;
  std::vector<SlicePtr> slices;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : engine_(seed) {}
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine_); }
  ServicePtr any_service(int i) {
    return share(service("svc-" + std::to_string(i), std::to_string(below(2))));
  }
  SlicePtr any_slice(int i) {
    static constexpr const char* kOwners[] = {"svc-0", "svc-1", "svc-2", ""};
    kube::EndpointSlice s =
        slice("slice-" + std::to_string(i), kOwners[below(4)], std::to_string(below(2)));
    s.trigger_time_ns = below(3);
    return share(s);
  }
  World world() {
    World world;
    for (int i = 0; i < 4; ++i) {
      if (below(2) == 0) {
        world.services.push_back(any_service(i));
      }
    }
    for (int i = 0; i < 6; ++i) {
      if (below(3) > 0) {
        world.slices.push_back(any_slice(i));
      }
    }
    return world;
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    std::shuffle(items.begin(), items.end(), engine_);
  }

 private:
  std::mt19937 engine_;
};

// The lists of this number.
void fill(ObjectStore& store, const World& world, ListNumber list) {
  for (const ServicePtr& s : world.services) {
    (void)store.upsert(s, list);
  }
  store.services_listed(list);
  for (const SlicePtr& s : world.slices) {
    (void)store.upsert(s, list);
  }
  store.slices_listed(list);
}

TEST_CASE("what is held depends on the objects, not on the way there") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Generator any(seed);
    World last = any.world();
    ObjectStore walked;
    ListNumber list = 0;
    for (int i = any.below(4); i > 0; --i) {
      fill(walked, any.world(), ++list);
    }
    fill(walked, last, ++list);

    any.shuffle(last.services);
    any.shuffle(last.slices);
    ObjectStore fresh;
    for (const SlicePtr& s : last.slices) {
      (void)fresh.upsert(s);
    }
    for (const ServicePtr& s : last.services) {
      (void)fresh.upsert(s);
    }
    INFO("seed " << seed);
    CHECK(view(walked) == view(fresh));
  }
}

TEST_CASE("a replacement is the removal of what is absent, then an upsert of each") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Generator any(seed);
    const World before = any.world();
    const World after = any.world();
    ObjectStore replaced(1);
    ObjectStore stepped(1);
    for (ObjectStore* store : {&replaced, &stepped}) {
      fill(*store, before, 1);
      (void)store->take_changes();
    }

    fill(replaced, after, 2);
    const auto absent = [](const auto& key, const auto& all) {
      return std::none_of(
          all.begin(), all.end(), [&](const auto& o) { return o->meta.key == key; });
    };
    for (const ServicePtr& s : before.services) {
      if (absent(s->meta.key, after.services)) {
        CHECK(stepped.remove_service(s->meta.key));
      }
    }
    for (const SlicePtr& s : before.slices) {
      if (absent(s->meta.key, after.slices)) {
        (void)stepped.remove_slice(s->meta.key);  // not held when it had no owner
      }
    }
    for (const ServicePtr& s : after.services) {
      (void)stepped.upsert(s);
    }
    for (const SlicePtr& s : after.slices) {
      (void)stepped.upsert(s);
    }
    INFO("seed " << seed);
    CHECK(view(replaced) == view(stepped));
    CHECK(replaced.take_changes() == stepped.take_changes());
  }
}

TEST_CASE("a Service whose view changed is always dirty") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Generator any(seed);
    ObjectStore store;
    fill(store, any.world(), 1);
    (void)store.take_changes();
    const View before = view(store);
    for (int i = 0; i < 5; ++i) {
      switch (any.below(4)) {
        case 0:
          (void)store.upsert(any.any_service(any.below(4)));
          break;
        case 1:
          (void)store.upsert(any.any_slice(any.below(6)));
          break;
        case 2:
          (void)store.remove_service({"shop", "svc-" + std::to_string(any.below(4))});
          break;
        default:
          (void)store.remove_slice({"shop", "slice-" + std::to_string(any.below(6))});
      }
    }
    const View after = view(store);
    const Changes changes = store.take_changes();
    INFO("seed " << seed);
    for (int i = 0; i < 4; ++i) {
      const ObjectKey key{"shop", "svc-" + std::to_string(i)};
      const auto part = [&](const View& v) {
        const auto s = v.services.find(key);
        const auto l = v.slices.find(key);
        return std::pair(
            s == v.services.end() ? std::nullopt : std::optional(s->second),
            l == v.slices.end() ? std::vector<kube::EndpointSlice>{} : l->second);
      };
      if (part(before) != part(after)) {
        CHECK(changes.services.contains(key));
      }
    }
  }
}

}  // namespace
}  // namespace shunt::store
