#include "backend/conntrack/stale_flows.h"

#include <algorithm>
#include <utility>

namespace shunt::backend::conntrack {
namespace {

// Sent elsewhere than where the client sent it.
bool redirected(const Flow& flow) { return flow.reply.from != flow.original.to; }

}  // namespace

void StaleFlows::set(const desired::FrontendKey& key, desired::EndpointListPtr serving) {
  if (key.protocol == net::Protocol::Udp) {
    frontends_.insert_or_assign({key.ip, key.port}, std::move(serving));
  }
}

void StaleFlows::erase(const desired::FrontendKey& key) {
  if (key.protocol == net::Protocol::Udp) {
    frontends_.erase({key.ip, key.port});
  }
}

const desired::EndpointListPtr* StaleFlows::frontend_of(
    const Flow& flow, const LocalAddresses& local) const {
  const net::SocketAddress& to = flow.original.to;
  if (const auto exact = frontends_.find(to); exact != frontends_.end()) {
    return &exact->second;
  }
  // A flow that went where it was sent is only ours if it was sent to this node: its processes may
  // well talk to a stranger's port of the same number.
  if (!redirected(flow) && !local.contains(to.ip)) {
    return nullptr;
  }
  const auto node_port = frontends_.find({net::IpAddress{to.ip.family, {}}, to.port});
  return node_port == frontends_.end() ? nullptr : &node_port->second;
}

bool StaleFlows::is_stale(const Flow& flow, const LocalAddresses& local) const {
  if (flow.protocol != static_cast<std::uint8_t>(net::Protocol::Udp)) {
    return false;
  }
  const desired::EndpointListPtr* serving = frontend_of(flow, local);
  if (serving == nullptr) {
    return false;
  }
  if (*serving == nullptr || (*serving)->empty()) {
    // There is nowhere else to send an answered flow, and its endpoint may live on. One that was
    // never answered loses nothing: its sender is refused, instead of talking to the void for ever.
    return redirected(flow) && !flow.answered;
  }
  return !std::binary_search((*serving)->begin(), (*serving)->end(), flow.reply.from);
}

}  // namespace shunt::backend::conntrack
