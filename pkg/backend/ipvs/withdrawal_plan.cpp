#include "backend/ipvs/withdrawal_plan.h"

#include <algorithm>
#include <set>

namespace shunt::backend::ipvs {
namespace {

using netlink::ipvs::Destination;

bool has(const std::vector<net::IpAddress>& sorted, const net::IpAddress& address) {
  return std::ranges::binary_search(sorted, address);
}

std::size_t connections_of(const Destination& destination) {
  return std::size_t{destination.active_connections} + destination.inactive_connections;
}

}  // namespace

bool is_of_services(
    const net::IpAddress& address, const Holdings& held, const std::vector<net::Cidr>& excluded) {
  if (!held.device || net::any_contains(excluded, address)) {
    return false;
  }
  return has(held.bound, address) || (has(held.host, address) && !is_loopback(address));
}

Withdrawing withdraw(const Holdings& held, const std::vector<net::Cidr>& excluded) {
  Withdrawing out;
  std::set<net::IpAddress> served;
  for (const auto& [server, destinations] : held.servers) {
    served.insert(server.address.ip);
    if (!is_of_services(server.address.ip, held, excluded)) {
      continue;
    }
    std::vector<net::SocketAddress> idle;
    for (const Destination& destination : destinations) {
      // In two looks: one that has no connections may get one until its weight is 0.
      if (destination.weight != 0) {
        Destination silent = destination;
        silent.weight = 0;
        out.silence.emplace_back(server, silent);
      } else if (connections_of(destination) == 0) {
        idle.push_back(destination.address);
      }
    }
    if (idle.size() == destinations.size()) {
      out.servers.push_back(server);
      continue;
    }
    for (const net::SocketAddress& address : idle) {
      out.destinations.emplace_back(server, address);
    }
  }
  for (const net::IpAddress& address : held.bound) {
    if (!served.contains(address) && !net::any_contains(excluded, address)) {
      out.addresses.push_back(address);
    }
  }
  return out;
}

Withdrawing withdraw_now(const Holdings& held, const std::vector<net::Cidr>& excluded) {
  Withdrawing out;
  for (const Holdings::OfServer& one : held.servers) {
    if (is_of_services(one.server.address.ip, held, excluded)) {
      out.servers.push_back(one.server);
    }
  }
  for (const net::IpAddress& address : held.bound) {
    if (!net::any_contains(excluded, address)) {
      out.addresses.push_back(address);
    }
  }
  return out;
}

Remaining& Remaining::operator+=(const Remaining& other) {
  servers += other.servers;
  destinations += other.destinations;
  connections += other.connections;
  addresses += other.addresses;
  excluded_addresses += other.excluded_addresses;
  return *this;
}

Remaining remaining(const Holdings& held, const std::vector<net::Cidr>& excluded) {
  Remaining out;
  for (const auto& [server, destinations] : held.servers) {
    if (!is_of_services(server.address.ip, held, excluded)) {
      continue;
    }
    ++out.servers;
    out.destinations += destinations.size();
    for (const Destination& destination : destinations) {
      out.connections += connections_of(destination);
    }
  }
  for (const net::IpAddress& address : held.bound) {
    ++(net::any_contains(excluded, address) ? out.excluded_addresses : out.addresses);
  }
  return out;
}

}  // namespace shunt::backend::ipvs
