// A Service of many endpoints, cut into slices of a hundred as the EndpointSlice controller does,
// and its rolling update.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/suite/stage.h"

namespace shunt::bench {

class LargeService {
 public:
  LargeService(std::string name, std::string cluster_ip, std::size_t endpoints);

  std::vector<nlohmann::json> objects() const;  // the Service and its slices

  // Endpoint `index` of the first slice turns ready or not.
  HttpReply set_ready(Stage& stage, std::size_t index, bool ready);

  // One write of a rolling update, slice after slice: pods that were starting are ready and as many
  // of the old ones terminate, those that were terminating are gone, and `pods` new ones start.
  void roll(Stage& stage, std::size_t pods);

 private:
  struct Pod {
    std::uint32_t number = 0;
    enum class State : std::uint8_t { Starting, Ready, Terminating } state = State::Ready;
  };
  using Slice = std::vector<Pod>;

  nlohmann::json slice_object(std::size_t index) const;
  HttpReply write(Stage& stage, std::size_t index) const;
  std::string slice_name(std::size_t index) const;

  std::string name_;
  std::string cluster_ip_;
  std::vector<Slice> slices_;
  std::uint32_t next_pod_ = 0;
  std::size_t next_slice_ = 0;
};

}  // namespace shunt::bench
