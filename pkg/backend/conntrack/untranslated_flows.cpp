#include "backend/conntrack/untranslated_flows.h"

#include <algorithm>
#include <optional>

namespace shunt::backend::conntrack {
namespace {

std::optional<net::Protocol> protocol_of(const Flow& flow) {
  for (const net::Protocol protocol :
       {net::Protocol::Tcp, net::Protocol::Udp, net::Protocol::Sctp}) {
    if (static_cast<std::uint8_t>(protocol) == flow.protocol) {
      return protocol;
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_untranslated(
    const Flow& flow,
    const std::vector<desired::FrontendKey>& frontends,
    const LocalAddresses& local) {
  const net::SocketAddress& to = flow.original.to;
  if (flow.answered || flow.reply.from != to) {
    return false;
  }
  const auto protocol = protocol_of(flow);
  if (!protocol) {
    return false;
  }
  const auto holds = [&](const desired::FrontendKey& key) {
    return std::binary_search(frontends.begin(), frontends.end(), key);
  };
  // What this node's processes send to a stranger's port of a NodePort's number is theirs.
  return holds({to.ip, *protocol, to.port}) ||
         (local.contains(to.ip) && holds(desired::node_port_key(to.ip.family, *protocol, to.port)));
}

}  // namespace shunt::backend::conntrack
