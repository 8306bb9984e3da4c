// Our picture of the kernel's virtual servers of one family, and the commands that make them what
// frontends want.
//
// The kernel obeys commands one by one, so the picture follows each that it obeyed. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/ipvs/kernel.h"
#include "backend/ipvs/share.h"
#include "desired/frontend.h"
#include "netlink/ipvs.h"

namespace shunt::backend::ipvs {

std::string to_string(const ServerKey& key);  // "10.96.0.1:80/TCP"

struct ServerState {
  netlink::ipvs::Server server;
  std::map<net::SocketAddress, std::uint32_t> reals;  // to their weights
  std::optional<desired::FrontendKey> owner;          // none: found, and nobody claimed it yet
};

class ServerTable {
 public:
  void clear();
  void adopt(
      const netlink::ipvs::Server& server, std::span<const netlink::ipvs::Destination> reals);

  const ServerState* find(const ServerKey& key) const;
  // The servers that a frontend has.
  std::span<const ServerKey> owned_by(const desired::FrontendKey& frontend) const;
  std::vector<ServerKey> ownerless() const;
  std::vector<desired::FrontendKey> owners() const;  // frontends that were staged and not removed
  std::size_t size() const { return servers_.size(); }

  // Makes `frontend` the owner of servers at `keys`, and of no others, each with `wanted`; those
  // that another frontend owns are left to it. To be carried out in this order:
  // what can be done before the nftables program knows (servers, weights, new reals), what must
  // wait until it does (`late`: new reals of servers that came just now, when somebody may not
  // connect), and what goes: reals that leave, servers that go.
  struct Stages {
    Commands early;
    Commands late;
    std::vector<std::pair<ServerKey, net::SocketAddress>> leaving;
    std::vector<ServerKey> gone;
  };
  void stage(
      const desired::FrontendKey& frontend,
      std::span<const ServerKey> keys,
      const Balancing& wanted,
      bool restricted,
      Stages& stages);
  void stage_removal(const desired::FrontendKey& frontend, Stages& stages);

  // The kernel obeyed.
  void follow(const Command& command);

 private:
  void release(const desired::FrontendKey& frontend, const ServerKey& key, Stages& stages);
  void stage_reals(
      const desired::FrontendKey& frontend,
      const ServerKey& key,
      const Balancing& wanted,
      Commands& additions,
      Stages& stages);

  std::map<ServerKey, ServerState> servers_;
  std::unordered_map<desired::FrontendKey, std::vector<ServerKey>> owned_;
};

}  // namespace shunt::backend::ipvs
