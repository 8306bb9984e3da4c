#include "netlink/link_kind.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <vector>

#include "netlink/request_socket.h"
#include "netlink/requests.h"

namespace shunt::netlink {
namespace {

// More than any kernel gives (4096). It looks for the kind first, and then refuses the number.
constexpr std::uint32_t kTooManyQueues = 100'000;

}  // namespace

std::optional<bool> makes_links(const char* kind) {
  auto socket = RequestSocket::open_route();
  if (!socket) {
    return std::nullopt;
  }
  Requests request;
  request.begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, ifinfomsg{});
  request.put_string(IFLA_IFNAME, "shunt-probe");
  request.put_u32(IFLA_NUM_TX_QUEUES, kTooManyQueues);
  const std::size_t nest = request.nest(IFLA_LINKINFO);
  request.put_string(IFLA_INFO_KIND, kind);
  request.end_nest(nest);
  request.end();
  std::vector<RefusedRequest> refused;
  if (!(*socket)->send_each(request, refused) || refused.empty()) {
    return std::nullopt;
  }
  switch (refused.front().sys_errno) {
    case EINVAL:
      return true;
    case EOPNOTSUPP:
      return false;
    default:
      return std::nullopt;
  }
}

}  // namespace shunt::netlink
