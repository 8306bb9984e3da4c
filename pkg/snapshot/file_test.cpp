#include "snapshot/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/testing/temp_dir.h"
#include "snapshot/testing/random_objects.h"
#include "store/object_store.h"

namespace shunt::snapshot {
namespace {

using shunt::testing::TempDir;

const WallTime kTime{std::chrono::milliseconds(1'700'000'000'123)};

template <typename T>
std::shared_ptr<const T> shared(T object) {
  return std::make_shared<const T>(std::move(object));
}

kube::Service service(int number) {
  kube::Service out;
  out.meta.key = {"shop", "web-" + std::to_string(number)};
  out.cluster_ip = "10.0.0." + std::to_string(number);
  out.ports = {{"http", "TCP", 80, 0}};
  return out;
}
kube::EndpointSlice slice(int number) {
  kube::EndpointSlice out;
  out.meta.key = {"shop", "web-" + std::to_string(number) + "-x"};
  out.service_name = "web-" + std::to_string(number);
  out.address_type = "IPv4";
  out.endpoints.resize(2);
  out.ports = {{"http", "TCP", 8080}};
  return out;
}

store::ObjectStore full_store() {
  store::ObjectStore store;
  for (int i = 0; i < 20; ++i) {
    store.upsert(shared(service(i)));
    store.upsert(shared(slice(i)));
  }
  kube::Node node;
  node.meta.key.name = "n1";
  node.zone = "a";
  store.upsert(shared(node));
  kube::ServiceCidr cidr;
  cidr.meta.key.name = "kubernetes";
  cidr.cidrs = {"10.0.0.0/8"};
  store.upsert(shared(cidr));
  store.service_cidrs_listed(0);
  return store;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string written(const store::Image& image, const TempDir& dir) {
  const auto size = write_file(dir.path("snapshot"), "n1", kTime, image);
  REQUIRE(size);
  std::string bytes = bytes_of(dir.path("snapshot"));
  CHECK(*size == bytes.size());
  return bytes;
}

TEST_CASE("what was known is known again") {
  const TempDir dir;
  (void)written(full_store().image(), dir);
  auto got = read_file(dir.path("snapshot"), "n1");
  REQUIRE(got);
  CHECK(got->node_name == "n1");
  CHECK(got->written == kTime);
  REQUIRE(got->services.size() == 20);
  REQUIRE(got->slices.size() == 20);
  const auto by_key = [](const auto& a, const auto& b) { return a->meta.key < b->meta.key; };
  std::ranges::sort(got->services, by_key);
  std::ranges::sort(got->slices, by_key);
  std::vector<kube::ObjectKey> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back(service(i).meta.key);
  }
  std::ranges::sort(names);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(got->services[i]->meta.key == names[i]);
    const int number = std::stoi(names[i].name.substr(4));
    CHECK(*got->services[i] == service(number));
    CHECK(*got->slices[i] == slice(number));
  }
  REQUIRE(got->node);
  CHECK(got->node->zone == "a");
  CHECK(got->service_cidrs_known);
  REQUIRE(got->service_cidrs.size() == 1);
  CHECK(got->service_cidrs[0]->cidrs == std::vector<std::string>{"10.0.0.0/8"});
}

TEST_CASE("the file is nobody else's to read, and replaces the one before") {
  const TempDir dir;
  std::ofstream(dir.path("snapshot")) << "what was there";
  std::ofstream(dir.path("snapshot.new")) << "what a crash left";
  (void)written(full_store().image(), dir);
  struct stat about {};
  REQUIRE(::stat(dir.path("snapshot").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  CHECK_FALSE(std::filesystem::exists(dir.path("snapshot.new")));
}

TEST_CASE("a file that cannot be written leaves the one before as it was") {
  const TempDir dir;
  const std::string before = written(full_store().image(), dir);
  CHECK_FALSE(write_file(dir.path("absent/snapshot"), "n1", kTime, full_store().image()));
  std::filesystem::create_directory(dir.path("snapshot.new"));
  const auto failed = write_file(dir.path("snapshot"), "n1", kTime, full_store().image());
  REQUIRE_FALSE(failed);
  CHECK(failed.error().what.find(dir.path("snapshot")) != std::string::npos);
  CHECK(bytes_of(dir.path("snapshot")) == before);
}

TEST_CASE("a torn, foreign or corrupt file is refused, and says why") {
  const TempDir dir;
  const std::string good = written(full_store().image(), dir);
  const auto refusal = [](const std::string& bytes, const std::string& node = "n1") {
    const auto got = parse(bytes, node);
    return got ? std::string("good") : got.error().what;
  };
  CHECK(refusal(good) == "good");
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK(refusal(good.substr(0, size)) != "good");
  }
  CHECK(refusal(good.substr(0, good.size() - 1)) == "it is cut short");
  CHECK(refusal(good.substr(0, 25)) == "it is cut short");
  CHECK(refusal(good + "x") == "it is too long");
  CHECK(refusal("") == "it is no snapshot of kube-shunt");
  CHECK(refusal("apiVersion: v1\nkind: Service\n") == "it is no snapshot of kube-shunt");
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    CHECK(refusal(flipped) != "good");
  }
  std::string newer = good;
  newer[20] = 3;
  CHECK(refusal(newer) == "it is of version 3, and we know version 2");
  CHECK(refusal(good, "n2") == "it is of another node");
  CHECK(refusal(std::string(good.size(), '\0')) == "it is no snapshot of kube-shunt");
}

TEST_CASE("errors of reading name the file and say whether it is there") {
  const TempDir dir;
  const auto absent = read_file(dir.path("absent"), "n1");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == Errc::NotFound);
  CHECK(absent.error().what.find(dir.path("absent")) != std::string::npos);
  CHECK_FALSE(read_file(dir.path(""), "n1"));
  REQUIRE(::mkfifo(dir.path("fifo").c_str(), 0600) == 0);
  CHECK_FALSE(read_file(dir.path("fifo"), "n1"));
}

struct Doors {
  WakeFd wake;
  Mailbox<std::shared_ptr<const kube::Service>> services{wake};
  Mailbox<std::shared_ptr<const kube::EndpointSlice>> slices{wake};
  Mailbox<std::shared_ptr<const kube::Node>> nodes{wake};
  Mailbox<std::shared_ptr<const kube::ServiceCidr>> cidrs{wake};
  Outboxes outboxes() { return {services, slices, nodes, cidrs}; }
};

TEST_CASE("contents come like a list, and only where the API server said nothing yet") {
  const TempDir dir;
  const auto got = parse(written(full_store().image(), dir), "n1");
  REQUIRE(got);
  Doors doors;
  doors.services.begin_list();  // a reflector is in the middle of its first list
  doors.slices.begin_list();
  doors.slices.upsert("shop/other", shared(slice(1)));
  const Delivered delivered = deliver(*got, doors.outboxes());
  CHECK(delivered.services);
  CHECK_FALSE(delivered.slices);
  CHECK(delivered.nodes);
  CHECK(delivered.service_cidrs);
  const auto mail = doors.services.drain();
  CHECK(mail.changes.size() == 20);
  CHECK(mail.changes.contains("shop/web-7"));
  CHECK(mail.listed == 0U);
  CHECK(doors.slices.drain().changes.size() == 1);
  CHECK(doors.nodes.drain().changes.contains("n1"));
}

TEST_CASE("what was not known is not delivered as if it were") {
  const TempDir dir;
  store::ObjectStore store;
  store.upsert(shared(service(1)));
  const auto got = parse(written(store.image(), dir), "n1");
  REQUIRE(got);
  Doors doors;
  const Delivered delivered = deliver(*got, doors.outboxes());
  CHECK_FALSE(delivered.nodes);
  CHECK_FALSE(delivered.service_cidrs);
  CHECK(doors.nodes.drain().empty());
  CHECK(doors.cidrs.drain().empty());
}

TEST_CASE("the first list of the API server takes over from a snapshot") {
  const TempDir dir;
  const auto got = parse(written(full_store().image(), dir), "n1");
  REQUIRE(got);
  Doors doors;
  store::ObjectStore store;
  const auto drain = [&] {
    auto mail = doors.services.drain();
    for (auto& [key, slot] : mail.changes) {
      store.upsert(*slot.value, slot.list);
    }
    if (mail.listed) {
      store.services_listed(*mail.listed);
    }
  };
  doors.services.begin_list();
  (void)deliver(*got, doors.outboxes());
  drain();
  CHECK(store.service_count() == 20);
  doors.services.upsert("shop/web-3", shared(service(3)));
  doors.services.end_list();
  drain();
  CHECK(store.service_keys() == std::vector<kube::ObjectKey>{{"shop", "web-3"}});
}

}  // namespace
}  // namespace shunt::snapshot
