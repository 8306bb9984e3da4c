// What is encoded comes back; what nobody encoded does no harm.
#include "snapshot/archive.h"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <limits>

#include "kube/decode_json.h"
#include "snapshot/objects.h"
#include "snapshot/testing/random_objects.h"

namespace shunt::snapshot {
namespace {

template <typename T>
void check_round_trip(const std::vector<T>& objects) {
  Encoder out;
  for (const T& object : objects) {
    put(out, object);
  }
  Decoder in(out.bytes());
  for (const T& object : objects) {
    T again;
    take(in, again);
    REQUIRE(in.good());
    CHECK(again == object);
  }
  CHECK(in.at_end());
}

TEST_CASE("random objects come back equal") {
  testing::RandomObjects random(3);
  std::vector<kube::Service> services;
  std::vector<kube::EndpointSlice> slices;
  std::vector<kube::Node> nodes;
  std::vector<kube::ServiceCidr> cidrs;
  for (int i = 0; i < 300; ++i) {
    services.push_back(random.service());
    slices.push_back(random.slice());
    nodes.push_back(random.node());
    cidrs.push_back(random.service_cidr());
  }
  check_round_trip(services);
  check_round_trip(slices);
  check_round_trip(nodes);
  check_round_trip(cidrs);
}

template <typename T>
void check_recording(const std::string& name) {
  std::ifstream file(
      std::string(SHUNT_SOURCE_DIR) + "/test/recordings/list-" + name + ".json.body");
  const std::string body{std::istreambuf_iterator<char>(file), {}};
  const auto list = kube::decode_list<T>(body);
  REQUIRE(list);
  REQUIRE_FALSE(list->items.empty());
  check_round_trip(list->items);
}

TEST_CASE("what a real API server listed comes back equal") {
  check_recording<kube::Service>("services");
  check_recording<kube::EndpointSlice>("endpointslices");
  check_recording<kube::Node>("node");
  check_recording<kube::ServiceCidr>("servicecidrs");
}

TEST_CASE("numbers come back to their last bit") {
  using Wide = std::numeric_limits<std::int64_t>;
  using Narrow = std::numeric_limits<std::int32_t>;
  for (const std::int64_t value :
       {std::int64_t{0},
        std::int64_t{-1},
        std::int64_t{64},
        std::int64_t{-64},
        Wide::min(),
        Wide::max()}) {
    Encoder out;
    out.signed_number(value);
    Decoder in(out.bytes());
    std::int64_t again = 1;
    in.signed_number(again);
    CHECK(again == value);
    CHECK(in.at_end());
  }
  for (const std::int32_t value : {Narrow::min(), Narrow::max(), 0}) {
    Encoder out;
    out.number(value);
    Decoder in(out.bytes());
    std::int32_t again = 1;
    in.number(again);
    CHECK(again == value);
  }
}

TEST_CASE("a text that many share is written once") {
  Encoder out;
  for (int i = 0; i < 100; ++i) {
    out.shared("a-node-with-a-rather-long-name");
  }
  CHECK(out.bytes().size() < 140);
}

TEST_CASE("whatever is cut off is noticed") {
  testing::RandomObjects random(5);
  Encoder out;
  put(out, random.slice());
  put(out, random.service());
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    Decoder in(std::string_view(out.bytes()).substr(0, size));
    kube::EndpointSlice slice;
    kube::Service service;
    take(in, slice);
    take(in, service);
    CHECK_FALSE(in.good());
  }
}

TEST_CASE("bytes that nobody wrote do no harm") {
  const auto is_good = [](std::string_view bytes, const auto& read) {
    Decoder in(bytes);
    read(in);
    return in.good();
  };
  const auto number = [](Decoder& in) {
    std::uint64_t value = 0;
    in.number(value);
  };
  const auto narrow = [](Decoder& in) {
    std::int32_t value = 0;
    in.number(value);
    CHECK(value == 0);
  };
  const auto text = [](Decoder& in) {
    std::string value;
    in.text(value);
    CHECK(value.empty());
  };
  const auto shared = [](Decoder& in) {
    std::string value;
    in.shared(value);
    CHECK(value.empty());
  };
  const auto flag = [](Decoder& in) {
    bool value = false;
    in.flag(value);
  };
  CHECK_FALSE(is_good(std::string(11, '\xff'), number));
  CHECK_FALSE(is_good("\xff\xff\xff\xff\xff\x7f", narrow));
  CHECK_FALSE(is_good("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", text));
  CHECK_FALSE(is_good("\x02", shared));
  CHECK_FALSE(is_good("\x02", flag));
  CHECK_FALSE(is_good("\x7f", [](Decoder& in) { CHECK(in.count() == 0); }));
}

}  // namespace
}  // namespace shunt::snapshot
