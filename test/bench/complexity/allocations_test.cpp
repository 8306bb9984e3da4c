// What one change costs the sync loop in heap memory: the store, the plans, the back end's mirror
// and the bytes of the transaction, up to a kernel that takes everything. It may not depend on how
// many Services there are beside it.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/nft/nft_backend.h"
#include "bench/complexity/counted_new.h"
#include "bench/complexity/counting_transport.h"
#include "sync/sync_loop.h"

namespace shunt::test {
namespace {

constexpr int kWarmUp = 8;  // buffers grow to the size they keep
constexpr int kFlips = 33;

std::shared_ptr<const kube::Service> service(unsigned number) {
  auto out = std::make_shared<kube::Service>();
  out->meta.key = {"ns", fmt::format("s{:06}", number)};
  out->meta.resource_version = "1";
  out->cluster_ip =
      fmt::format("10.{}.{}.{}", 96 + number / 65536, number / 256 % 256, number % 256);
  out->cluster_ips = {out->cluster_ip};
  out->ip_families = {"IPv4"};
  out->ports = {{"p", "TCP", 80, 0}};
  return out;
}

// Ten endpoints; the first is another one when `moved`.
std::shared_ptr<const kube::EndpointSlice> slice(unsigned number, bool moved) {
  auto out = std::make_shared<kube::EndpointSlice>();
  out->meta.key = {"ns", fmt::format("s{:06}-1", number)};
  out->meta.resource_version = moved ? "2" : "3";
  out->service_name = fmt::format("s{:06}", number);
  out->address_type = "IPv4";
  for (unsigned e = 0; e < 10; ++e) {
    kube::SliceEndpoint endpoint;
    endpoint.address = net::parse_ip(fmt::format("10.64.{}.{}", moved && e == 0 ? 9 : 0, e + 1));
    out->endpoints.push_back(std::move(endpoint));
  }
  out->ports = {{"p", "TCP", 8080}};
  return out;
}

class Loop {
 public:
  explicit Loop(unsigned services) {
    std::vector<sync::FamilyBackend> backends;
    backends.push_back(
        {net::Family::IPv4,
         std::make_unique<backend::nft::NftBackend>(
             net::Family::IPv4,
             backend::nft::ProgramSettings{},
             std::make_unique<CountingTransport>(),
             std::make_unique<IdlePurger>())});
    sync::SyncOptions options;
    options.node_name = "here";
    options.node_patience = Millis{0};
    loop_ =
        std::make_unique<sync::SyncLoop>(options, boxes_, std::move(backends), [] { return 0.0; });
    thread_ = std::thread([this] { loop_->run(); });
    boxes_.services.begin_list();
    boxes_.slices.begin_list();
    for (unsigned i = 0; i < services; ++i) {
      boxes_.services.upsert(fmt::format("ns/s{:06}", i), service(i));
      boxes_.slices.upsert(fmt::format("ns/s{:06}-1", i), slice(i, false));
    }
    boxes_.services.end_list();
    boxes_.slices.end_list();
    boxes_.service_cidrs.begin_list();
    boxes_.service_cidrs.end_list();
    while (!loop_->settle(Millis{60'000})->synced) {
    }
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    loop_->stop();
    thread_.join();
  }

  // The least that one of many flips of one endpoint took: the loop may be woken once for the
  // change and once for settle(), and then publishes twice.
  HeapUse flip() {
    std::vector<HeapUse> uses;
    for (int i = 0; i < kWarmUp + kFlips; ++i) {
      auto next = slice(77, i % 2 == 0);
      const std::uint64_t before_elements = loop_->status()->cost.messages;
      const HeapUse before = heap_use();
      boxes_.slices.upsert("ns/s000077-1", std::move(next));
      const auto status = loop_->settle(Millis{10'000});
      const HeapUse after = heap_use();
      REQUIRE(status->idle);
      REQUIRE(status->cost.messages - before_elements == 2);  // one element went, one came
      if (i >= kWarmUp) {
        uses.push_back({after.allocations - before.allocations, after.bytes - before.bytes});
      }
    }
    return *std::min_element(uses.begin(), uses.end());
  }

 private:
  sync::Mailboxes boxes_;
  std::unique_ptr<sync::SyncLoop> loop_;
  std::thread thread_;
};

TEST_CASE("a flipped endpoint allocates the same among 200, 2 000 and 20 000 Services") {
  std::map<unsigned, HeapUse> uses;
  for (const unsigned services : {200U, 2'000U, 20'000U}) {
    uses[services] = Loop(services).flip();
    UNSCOPED_INFO(
        services << " Services: " << uses[services].allocations << " allocations, "
                 << uses[services].bytes << " bytes");
  }
  const HeapUse least = uses[200];
  CHECK(least.allocations > 0);  // or nothing was counted
  CHECK(least.allocations < 200);
  // One publication more or less; another level of a tree, or a copy of anything, would be more.
  constexpr std::uint64_t kSlack = 4;
  constexpr std::uint64_t kSlackBytes = 512;
  for (const unsigned services : {2'000U, 20'000U}) {
    CHECK(uses[services].allocations <= least.allocations + kSlack);
    CHECK(uses[services].bytes <= least.bytes + kSlackBytes);
  }
}

}  // namespace
}  // namespace shunt::test
