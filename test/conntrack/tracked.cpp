#include "conntrack/tracked.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "backend/conntrack/wire.h"

namespace shunt::test {

using backend::conntrack::Flow;
namespace wire = backend::conntrack;

namespace {

constexpr std::uint32_t kHour = 3600;
constexpr std::size_t kAtOnce = 1000;

void require(const Result<>& result) {
  if (!result) {
    throw std::runtime_error(result.error().what);
  }
}

}  // namespace

TrackedFlows::TrackedFlows() {
  auto socket = netlink::Socket::open();
  if (!socket) {
    throw std::runtime_error(socket.error().what);
  }
  socket_ = std::move(*socket);
}

void TrackedFlows::insert(std::span<const Flow> flows) {
  netlink::Messages messages(NFNL_SUBSYS_CTNETLINK);
  std::vector<netlink::MessageError> errors;
  while (!flows.empty()) {
    messages.clear();
    for (const Flow& flow : flows.first(std::min(kAtOnce, flows.size()))) {
      messages.begin(
          IPCTNL_MSG_CT_NEW,
          NLM_F_CREATE | NLM_F_EXCL,
          wire::kernel_family(flow.original.to.ip.family));
      wire::put_flow(messages, flow);
      const unsigned both_ways = flow.answered ? IPS_SEEN_REPLY | IPS_ASSURED : 0;
      messages.put_be32(CTA_STATUS, both_ways | IPS_CONFIRMED);
      messages.put_be32(CTA_TIMEOUT, kHour);
      messages.end();
    }
    require(socket_->send_each(messages, errors));
    if (!errors.empty()) {
      throw std::runtime_error(
          "entry " + std::to_string(errors.front().sequence) +
          " cannot be inserted: " + std::strerror(errors.front().sys_errno));
    }
    flows = flows.subspan(messages.messages());
  }
}

std::multiset<Flow> TrackedFlows::all(net::Family family) {
  std::multiset<Flow> out;
  require(socket_->dump(
      NFNL_SUBSYS_CTNETLINK,
      IPCTNL_MSG_CT_GET,
      wire::kernel_family(family),
      {},
      [&](netlink::AttributeBytes attributes) {
        if (auto flow = wire::parse_flow(attributes)) {
          flow->id = 0;
          out.insert(*flow);
        }
      }));
  return out;
}

}  // namespace shunt::test
