#include "store/image.h"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "store/object_store.h"

namespace shunt::store {
namespace {

kube::Service service(int number) {
  kube::Service out;
  out.meta.key = {"ns-" + std::to_string(number % 3), "web-" + std::to_string(number)};
  out.meta.uid = "u-" + std::to_string(number);
  out.type = "ClusterIP";
  out.cluster_ip = "10.0.0." + std::to_string(number);
  out.ports = {{"http", "TCP", 80, 0}};
  return out;
}
kube::EndpointSlice slice(int number) {
  kube::EndpointSlice out;
  out.meta.key = {"ns-" + std::to_string(number % 3), "web-" + std::to_string(number) + "-x"};
  out.service_name = "web-" + std::to_string(number);
  out.address_type = "IPv4";
  out.endpoints.resize(3);
  for (auto& endpoint : out.endpoints) {
    endpoint.node_name = "node-" + std::to_string(number);
  }
  out.ports = {{"http", "TCP", 8080}};
  return out;
}
template <typename T>
std::shared_ptr<const T> shared(T object) {
  return std::make_shared<const T>(std::move(object));
}

struct Held {
  std::map<kube::ObjectKey, kube::Service> services;
  std::map<kube::ObjectKey, kube::EndpointSlice> slices;
};
Held read(const Image& image) {
  Held out;
  image.each_service([&](const kube::Service& one) { out.services[one.meta.key] = one; });
  image.each_slice([&](const kube::EndpointSlice& one) { out.slices[one.meta.key] = one; });
  return out;
}

TEST_CASE("an image holds what the store held when it was made, whatever comes after") {
  auto store = std::make_unique<ObjectStore>();
  for (int i = 0; i < 50; ++i) {
    store->upsert(shared(service(i)));
    store->upsert(shared(slice(i)));
  }
  kube::Node node;
  node.meta.key.name = "n1";
  store->upsert(shared(node));
  kube::ServiceCidr cidr;
  cidr.cidrs = {"10.0.0.0/8"};
  store->upsert(shared(cidr));
  const Image image = store->image();
  for (int i = 0; i < 50; i += 2) {
    store->remove_service(service(i).meta.key);
    store->remove_slice(slice(i).meta.key);
    store->upsert(shared(slice(i + 100)));  // names are freed and taken by others
  }
  store.reset();

  const Held held = read(image);
  REQUIRE(held.services.size() == 50);
  REQUIRE(held.slices.size() == 50);
  for (int i = 0; i < 50; ++i) {
    CHECK(held.services.at(service(i).meta.key) == service(i));
    CHECK(held.slices.at(slice(i).meta.key) == slice(i));
  }
  CHECK(*image.node == node);
  REQUIRE(image.service_cidrs.size() == 1);
  CHECK(*image.service_cidrs[0] == cidr);
  CHECK_FALSE(image.service_cidrs_known);
}

TEST_CASE("an image of any size holds every object once") {
  ObjectStore store;
  kube::Service large = service(0);
  large.external_ips.resize(1);
  std::size_t size = 0;
  for (int i = 0; i < 40; ++i) {
    large.meta.key.name = "large-" + std::to_string(i);
    large.external_ips[0] = std::string(static_cast<std::size_t>(100'000 * (i % 15 + 1)), 'x');
    size += large.external_ips[0].size();
    store.upsert(shared(large));
  }
  const Image image = store.image();
  CHECK(image.bytes() > size);
  std::size_t read_back = 0;
  image.each_service([&](const kube::Service& one) { read_back += one.external_ips[0].size(); });
  CHECK(read_back == size);
  CHECK(read(image).services.size() == 40);
}

TEST_CASE("a slice that came before its Service is in the image, the Service is not") {
  ObjectStore store;
  store.upsert(shared(slice(1)));
  const Held held = read(store.image());
  CHECK(held.services.empty());
  CHECK(held.slices.size() == 1);
}

TEST_CASE("the revision moves with every change, and with nothing else") {
  ObjectStore store;
  std::uint64_t seen = store.revision();
  const auto moved = [&] {
    const bool another = store.revision() != seen;
    seen = store.revision();
    return another;
  };
  store.upsert(shared(service(1)));
  CHECK(moved());
  store.upsert(shared(service(1)));
  CHECK_FALSE(moved());
  kube::Service newer = service(1);
  newer.meta.resource_version = "9";
  store.upsert(shared(newer));
  CHECK(moved());
  store.upsert(shared(slice(1)));
  CHECK(moved());
  store.remove_slice(slice(2).meta.key);
  CHECK_FALSE(moved());
  store.remove_slice(slice(1).meta.key);
  CHECK(moved());
  store.remove_service(service(1).meta.key);
  CHECK(moved());
  kube::Node node;
  node.meta.key.name = "n1";
  store.upsert(shared(node));
  CHECK(moved());
  node.meta.resource_version = "heartbeat";
  store.upsert(shared(node));
  CHECK_FALSE(moved());
  store.upsert(shared(service(1)), 1);
  CHECK(moved());
  store.services_listed(2);
  CHECK(moved());
  store.service_cidrs_listed(1);
  CHECK(moved());
  store.service_cidrs_listed(2);
  CHECK_FALSE(moved());
  CHECK(store.image().service_cidrs_known);
}

}  // namespace
}  // namespace shunt::store
