// How fast lists are decoded, and what that costs in memory: protobuf and JSON, the recorded slices
// over and over, and slices of a hundred endpoints. Pieces of 16 KiB, as TLS delivers them.
//   build/release/bin/bench_decode [MEGABYTES]
#include <fmt/format.h>
#include <time.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <vector>

#include "kube/json_list.h"
#include "kube/protobuf_list.h"
#include "kube/testing/protobuf_bytes.h"

namespace {

std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* const out = std::malloc(size)) {
    return out;
  }
  throw std::bad_alloc();
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace shunt::kube {
namespace {

using testing::bytes;
using testing::entry;
using testing::enveloped;
using testing::number;
using Items = std::vector<std::string>;

std::string contents(const std::string& name) {
  std::ifstream file(std::string(SHUNT_SOURCE_DIR) + "/test/recordings/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Items recorded_json() {
  Items out;
  JsonListCutter cutter(kMaxObject);
  (void)cutter.feed(contents("list-endpointslices.json.body"), [&](auto item) {
    out.emplace_back(item.value());
  });
  return out;
}
Items recorded_protobuf() {
  Items out;
  protobuf::ListCutter cutter("EndpointSliceList", kMaxObject);
  (void)cutter.feed(
      contents("list-endpointslices.pb.body"), [&](auto item) { out.emplace_back(item.value()); });
  return out;
}

constexpr int kEndpoints = 100;

std::string large_json(int n) {
  std::string out = fmt::format(
      R"({{"metadata":{{"name":"web-{0}-abcde","namespace":"shop","uid":"0b2c7f1e-6a6d-4a57-b2a8-{0:012}","resourceVersion":"{0}","creationTimestamp":"2026-11-29T16:44:49Z","labels":{{"kubernetes.io/service-name":"web-{0}"}}}},"addressType":"IPv4","ports":[{{"name":"http","protocol":"TCP","port":8080}}],"endpoints":[)",
      n);
  for (int i = 0; i < kEndpoints; ++i) {
    out += fmt::format(
        R"({}{{"addresses":["10.64.{}.{}"],"conditions":{{"ready":true,"serving":true,"terminating":false}},"targetRef":{{"kind":"Pod","namespace":"shop","name":"web-{}-{:05}","uid":"0b2c7f1e-6a6d-4a57-b2a8-{:012}"}},"nodeName":"node-{}","zone":"zone-a"}})",
        i == 0 ? "" : ",",
        i,
        n % 250,
        n,
        i,
        i,
        i);
  }
  return out + "]}";
}
std::string large_protobuf(int n) {
  const std::string meta = bytes(1, fmt::format("web-{}-abcde", n)) + bytes(3, "shop") +
                           bytes(5, fmt::format("0b2c7f1e-6a6d-4a57-b2a8-{:012}", n)) +
                           bytes(6, std::to_string(n)) + bytes(8, number(1, 1796057089)) +
                           entry(11, kServiceNameLabel, fmt::format("web-{}", n));
  std::string out = bytes(1, meta);
  for (int i = 0; i < kEndpoints; ++i) {
    const std::string target = bytes(1, "Pod") + bytes(2, "shop") +
                               bytes(3, fmt::format("web-{}-{:05}", n, i)) +
                               bytes(4, fmt::format("0b2c7f1e-6a6d-4a57-b2a8-{:012}", i));
    out += bytes(
        2,
        bytes(1, fmt::format("10.64.{}.{}", i, n % 250)) +
            bytes(2, number(1, 1) + number(2, 1) + number(3, 0)) + bytes(4, target) +
            bytes(6, fmt::format("node-{}", i)) + bytes(7, "zone-a"));
  }
  return out + bytes(3, bytes(1, "http") + bytes(2, "TCP") + number(3, 8080)) + bytes(4, "IPv4");
}

std::string json_body(const Items& items, std::size_t size) {
  std::string out = R"({"kind":"EndpointSliceList","metadata":{"resourceVersion":"1"},"items":[)";
  for (std::size_t i = 0; out.size() < size; ++i) {
    out += (i == 0 ? "" : ",") + items[i % items.size()];
  }
  return out + "]}";
}
std::string protobuf_body(const Items& items, std::size_t size) {
  std::string raw = bytes(1, bytes(2, "1"));
  for (std::size_t i = 0; raw.size() < size; ++i) {
    raw += bytes(2, items[i % items.size()]);
  }
  return enveloped("EndpointSliceList", raw);
}

// Of this thread: other programs of the machine do not count.
double cpu_seconds() {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);  // fails only for clocks that are not there
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <template <typename> typename Decoder>
void measure(const char* name, std::string_view body) {
  std::size_t objects = 0;
  std::size_t endpoints = 0;
  Decoder<EndpointSlice> decoder(
      {.on_item =
           [&](EndpointSlice&& item) {
             ++objects;
             endpoints += item.endpoints.size();
           },
       .on_issue = [](DecodeIssue&&) { std::abort(); }});
  const std::size_t before = allocations;
  const double start = cpu_seconds();
  for (std::size_t i = 0; i < body.size(); i += 16384) {
    if (!decoder.feed(body.substr(i, 16384))) {
      std::abort();
    }
  }
  if (!decoder.finish()) {
    std::abort();
  }
  const double took = cpu_seconds() - start;
  const auto per_object = [&](std::size_t n) {
    return static_cast<double>(n) / static_cast<double>(objects);
  };
  fmt::print(
      "{:24} {:7.0f} MB/s {:9.0f} objects/s  {:6.0f} bytes, {:5.1f} endpoints, {:5.1f} allocations "
      "an object\n",
      name,
      static_cast<double>(body.size()) / took / 1e6,
      static_cast<double>(objects) / took,
      per_object(body.size()),
      per_object(endpoints),
      per_object(allocations - before));
}

void run(std::size_t size) {
  Items large_json_items;
  Items large_protobuf_items;
  for (int i = 0; i < 100; ++i) {
    large_json_items.push_back(large_json(i));
    large_protobuf_items.push_back(large_protobuf(i));
  }
  for (int round = 0; round < 2; ++round) {
    measure<JsonListDecoder>("JSON, recorded", json_body(recorded_json(), size));
    measure<protobuf::ProtobufListDecoder>(
        "protobuf, recorded", protobuf_body(recorded_protobuf(), size));
    measure<JsonListDecoder>("JSON, large", json_body(large_json_items, size));
    measure<protobuf::ProtobufListDecoder>(
        "protobuf, large", protobuf_body(large_protobuf_items, size));
  }
}

}  // namespace
}  // namespace shunt::kube

int main(int argc, char** argv) {
  const long megabytes = argc > 1 ? std::atol(argv[1]) : 64;
  shunt::kube::run(static_cast<std::size_t>(megabytes) * 1'000'000);
  return 0;
}
