// The connection tracking table of the kernel, over ctnetlink: the one home of its messages.
#pragma once

#include <memory>
#include <optional>

#include "backend/conntrack/flow_table.h"
#include "netlink/attributes.h"
#include "netlink/messages.h"
#include "netlink/socket.h"

namespace shunt::backend::conntrack {

// Two sockets of the namespace in which it was opened: one is told the table, the other removes
// meanwhile. Needs CAP_NET_ADMIN. One thread.
class KernelFlowTable : public FlowTable {
 public:
  static Result<std::unique_ptr<KernelFlowTable>> open();

  Result<> scan(
      net::Family family, Which which, const std::function<void(const Flow&)>& each) override;
  Removal remove(net::Family family, std::span<const Flow> flows) override;
  Result<LocalAddresses> local_addresses() override;

 private:
  KernelFlowTable(
      std::unique_ptr<netlink::Socket> listing, std::unique_ptr<netlink::Socket> removing);
  Result<> list(
      net::Family family,
      const netlink::Attributes& filter,
      const std::function<void(const Flow&)>& each);

  std::unique_ptr<netlink::Socket> listing_;  // null after a failure
  std::unique_ptr<netlink::Socket> removing_;
  netlink::Messages removals_;
  bool kernel_filters_ = true;
};

// One entry as the kernel tells it; nothing when it has no addresses.
std::optional<Flow> parse_flow(netlink::AttributeBytes attributes);
// Both directions and the zone: what names an entry.
void put_flow(netlink::Attributes& attributes, const Flow& flow);

std::uint8_t kernel_family(net::Family family);

}  // namespace shunt::backend::conntrack
