#include "backend/ipvs/server_table.h"

#include <algorithm>
#include <utility>

namespace shunt::backend::ipvs {

using netlink::ipvs::Destination;
using netlink::ipvs::Server;

std::string to_string(const ServerKey& key) {
  return net::to_string(key.address) + "/" + std::string(net::to_string(key.protocol));
}

void ServerTable::clear() { *this = ServerTable(); }

void ServerTable::adopt(const Server& server, std::span<const Destination> reals) {
  ServerState state{server, {}, std::nullopt};
  for (const Destination& real : reals) {
    state.reals.emplace(real.address, real.weight);
  }
  servers_.insert_or_assign(server.key, std::move(state));
}

const ServerState* ServerTable::find(const ServerKey& key) const {
  const auto found = servers_.find(key);
  return found == servers_.end() ? nullptr : &found->second;
}

std::span<const ServerKey> ServerTable::owned_by(const desired::FrontendKey& frontend) const {
  const auto found = owned_.find(frontend);
  return found == owned_.end() ? std::span<const ServerKey>() : std::span(found->second);
}

std::vector<ServerKey> ServerTable::ownerless() const {
  std::vector<ServerKey> out;
  for (const auto& [key, state] : servers_) {
    if (!state.owner) {
      out.push_back(key);
    }
  }
  return out;
}

std::vector<desired::FrontendKey> ServerTable::owners() const {
  std::vector<desired::FrontendKey> out;
  out.reserve(owned_.size());
  for (const auto& [frontend, keys] : owned_) {
    out.push_back(frontend);
  }
  return out;
}

void ServerTable::stage_reals(
    const desired::FrontendKey& frontend,
    const ServerKey& key,
    const Balancing& wanted,
    Commands& additions,
    Stages& stages) {
  static const std::map<net::SocketAddress, std::uint32_t> none;
  const auto found = servers_.find(key);
  const auto& known = found == servers_.end() ? none : found->second.reals;
  auto now = known.begin();
  const auto leave_until = [&](const Real* next) {
    for (; now != known.end() && (next == nullptr || now->first < next->address); ++now) {
      stages.leaving.emplace_back(key, now->first);
    }
  };
  for (const Real& real : wanted.reals) {  // both are sorted
    leave_until(&real);
    if (now == known.end() || now->first != real.address) {
      additions.push_back({Command::What::AddReal, named(key), real, frontend});
      continue;
    }
    if (now->second != real.weight) {
      stages.early.push_back({Command::What::ChangeReal, named(key), real, frontend});
    }
    ++now;
  }
  leave_until(nullptr);
}

void ServerTable::release(
    const desired::FrontendKey& frontend, const ServerKey& key, Stages& stages) {
  const auto found = servers_.find(key);
  if (found != servers_.end() && found->second.owner == frontend) {
    found->second.owner.reset();
    stages.gone.push_back(key);
  }
}

void ServerTable::stage(
    const desired::FrontendKey& frontend,
    std::span<const ServerKey> keys,
    const Balancing& wanted,
    bool restricted,
    Stages& stages) {
  std::vector<ServerKey> mine;
  for (const ServerKey& key : keys) {
    const auto found = servers_.find(key);
    const bool there = found != servers_.end();
    if (there && found->second.owner && *found->second.owner != frontend) {
      continue;
    }
    const Server server{key, wanted.scheduler, wanted.flags, wanted.timeout, 0};
    if (!there) {
      stages.early.push_back({Command::What::AddServer, server, {}, frontend});
    } else {
      found->second.owner = frontend;
      if (found->second.server != server) {
        stages.early.push_back({Command::What::ChangeServer, server, {}, frontend});
      }
    }
    stage_reals(frontend, key, wanted, restricted && !there ? stages.late : stages.early, stages);
    mine.push_back(key);
  }
  std::vector<ServerKey>& owned = owned_[frontend];
  for (const ServerKey& key : owned) {
    if (std::ranges::find(mine, key) == mine.end()) {
      release(frontend, key, stages);
    }
  }
  owned = std::move(mine);
}

void ServerTable::stage_removal(const desired::FrontendKey& frontend, Stages& stages) {
  if (const auto found = owned_.find(frontend); found != owned_.end()) {
    for (const ServerKey& key : found->second) {
      release(frontend, key, stages);
    }
    owned_.erase(found);
  }
}

void ServerTable::follow(const Command& command) {
  const ServerKey& key = command.server.key;
  switch (command.what) {
    case Command::What::AddServer:
      servers_.insert_or_assign(key, ServerState{command.server, {}, command.frontend});
      return;
    case Command::What::RemoveServer:
      servers_.erase(key);
      return;
    default:
      break;
  }
  const auto found = servers_.find(key);
  if (found == servers_.end()) {
    return;
  }
  if (command.what == Command::What::ChangeServer) {
    found->second.server = command.server;
  } else if (command.what == Command::What::RemoveReal) {
    found->second.reals.erase(command.real.address);
  } else {
    found->second.reals.insert_or_assign(command.real.address, command.real.weight);
  }
}

}  // namespace shunt::backend::ipvs
