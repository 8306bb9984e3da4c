#include "bench/suite/large_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/suite/objects.h"

namespace shunt::bench {
namespace {

using nlohmann::json;

constexpr std::size_t kSliceSize = 100;

// Above the pods of the load.
std::string pod_ip(std::uint32_t number) {
  const std::uint32_t host = 0x0af00001U + number;
  return fmt::format("{}.{}.{}.{}", host >> 24, host >> 16 & 0xff, host >> 8 & 0xff, host & 0xff);
}

}  // namespace

LargeService::LargeService(std::string name, std::string cluster_ip, std::size_t endpoints)
    : name_(std::move(name)), cluster_ip_(std::move(cluster_ip)) {
  while (next_pod_ < endpoints) {
    if (slices_.empty() || slices_.back().size() == kSliceSize) {
      slices_.emplace_back();
    }
    slices_.back().push_back({next_pod_++, Pod::State::Ready});
  }
}

std::string LargeService::slice_name(std::size_t index) const {
  return fmt::format("{}-{}", name_, index);
}

json LargeService::slice_object(std::size_t index) const {
  json out = ServiceTarget{name_, cluster_ip_}.slice(1, 1);
  out["metadata"]["name"] = slice_name(index);
  json endpoints = json::array();
  for (const Pod& pod : slices_[index]) {
    endpoints.push_back(
        {{"addresses", {pod_ip(pod.number)}},
         {"conditions",
          {{"ready", pod.state == Pod::State::Ready},
           {"serving", pod.state != Pod::State::Starting},
           {"terminating", pod.state == Pod::State::Terminating}}},
         {"nodeName", Stage::kNode}});
  }
  out["endpoints"] = std::move(endpoints);
  return out;
}

std::vector<json> LargeService::objects() const {
  std::vector<json> out{ServiceTarget{name_, cluster_ip_}.service()};
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    out.push_back(slice_object(i));
  }
  return out;
}

HttpReply LargeService::write(Stage& stage, std::size_t index) const {
  return stage.http().request(
      "PATCH",
      fmt::format(
          "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices/{}",
          kNamespace,
          slice_name(index)),
      endpoints_patch(slice_object(index)));
}

HttpReply LargeService::set_ready(Stage& stage, std::size_t index, bool ready) {
  slices_.front().at(index).state = ready ? Pod::State::Ready : Pod::State::Starting;
  return write(stage, 0);
}

void LargeService::roll(Stage& stage, std::size_t pods) {
  const std::size_t index = std::exchange(next_slice_, (next_slice_ + 1) % slices_.size());
  Slice& slice = slices_[index];
  std::erase_if(slice, [](const Pod& pod) { return pod.state == Pod::State::Terminating; });
  std::size_t started = 0;
  for (Pod& pod : slice) {
    if (pod.state == Pod::State::Starting) {
      pod.state = Pod::State::Ready;
      ++started;
    }
  }
  for (auto pod = slice.begin(); pod != slice.end() && started > 0; ++pod, --started) {
    pod->state = Pod::State::Terminating;  // the oldest come first
  }
  for (std::size_t i = 0; i < pods; ++i) {
    slice.push_back({next_pod_++, Pod::State::Starting});
  }
  (void)write(stage, index);
}

}  // namespace shunt::bench
