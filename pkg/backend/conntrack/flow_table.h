// The seam to the kernel's connection tracking table: values in, values out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "backend/conntrack/flow.h"
#include "base/result.h"

namespace shunt::backend::conntrack {

class FlowTable {
 public:
  virtual ~FlowTable() = default;

  enum class Which : std::uint8_t { Udp, All };

  // Calls `each` with the flows of a family, one by one as the kernel tells them; may tell one
  // twice, and with Udp may tell flows of other protocols. `each` may call remove(). An error with
  // EINTR: the table was changing, and some flows may not have been told.
  virtual Result<> scan(
      net::Family family, Which which, const std::function<void(const Flow&)>& each) = 0;

  struct Removal {
    std::size_t removed = 0;  // without those that were gone already
    Result<> outcome;         // an error when one or more are still there
  };
  virtual Removal remove(net::Family family, std::span<const Flow> flows) = 0;

  // The addresses of this node where a NodePort may answer, which loopback addresses never do.
  virtual Result<LocalAddresses> local_addresses() = 0;
};

}  // namespace shunt::backend::conntrack
