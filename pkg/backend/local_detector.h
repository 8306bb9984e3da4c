// How traffic of local pods is recognised (spec/config.md §7).
#pragma once

#include <cstdint>
#include <string>

namespace shunt::backend {

struct LocalDetector {
  enum class Kind : std::uint8_t {
    None,            // cannot be told: nothing is masqueraded for being from outside
    SourceRange,     // source address in DesiredState::pod_cidrs (ClusterCIDR, NodeCIDR); when
                     // that is empty, as None
    InputInterface,  // the device a packet came in by is `name` (BridgeInterface)
    InputInterfacePrefix,  // its name begins with `name` (InterfaceNamePrefix)
  };
  Kind kind = Kind::None;
  std::string name;
  bool operator==(const LocalDetector&) const = default;
};

}  // namespace shunt::backend
