// What the IPVS back end asks of the kernel, so that tests can stand in for it. The real one is
// open_kernel().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "backend/ipvs/share.h"
#include "base/result.h"
#include "desired/frontend.h"
#include "netlink/ipvs.h"
#include "netlink/virtual_addresses.h"

namespace shunt::backend::ipvs {

using netlink::ipvs::ServerKey;

// To the table of virtual servers, and for whom.
struct Command {
  enum class What : std::uint8_t {
    AddServer,
    ChangeServer,
    RemoveServer,
    AddReal,
    ChangeReal,
    RemoveReal
  };
  What what;
  netlink::ipvs::Server server;  // of RemoveServer and the reals: the key alone
  Real real;
  std::optional<desired::FrontendKey> frontend;
};
using Commands = std::vector<Command>;

// A server that is only named.
inline netlink::ipvs::Server named(const ServerKey& key) {
  netlink::ipvs::Server server;
  server.key = key;
  return server;
}

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Virtual servers: see netlink/ipvs.h.
  virtual Result<std::vector<netlink::ipvs::Server>> servers() = 0;
  virtual Result<std::vector<netlink::ipvs::Destination>> destinations(
      const netlink::ipvs::ServerKey& server) = 0;
  virtual Result<> send(const Commands& commands, std::vector<netlink::ipvs::Refused>& refused) = 0;

  // Addresses: see netlink/virtual_addresses.h.
  using AddressChange = netlink::VirtualAddresses::Change;
  using AddressRefused = netlink::VirtualAddresses::Refused;
  virtual Result<> set_up() = 0;
  virtual Result<bool> has_rule() = 0;  // that delivers marked packets
  virtual Result<std::vector<net::IpAddress>> bound() = 0;
  virtual Result<std::vector<net::IpAddress>> local_routes() = 0;
  virtual Result<std::vector<net::IpAddress>> routes() = 0;
  virtual Result<> change(
      std::span<const AddressChange> changes, std::vector<AddressRefused>& refused) = 0;
  virtual Result<> tear_down() = 0;

  // Addresses of this family that the host has on other devices, as of the last take_changes().
  virtual std::set<net::IpAddress> host_addresses() const = 0;
  virtual int host_fd() const = 0;       // readable: call take_changes()
  virtual bool take_changes() = 0;       // whether host_addresses() are others now
  virtual int rules_fd() const = 0;      // readable: call take_rule_changes()
  virtual bool take_rule_changes() = 0;  // whether rules changed: look has_rule() up
};

// `mark`: of packets that are delivered here. One thread; opening asks the kernel to load ip_vs.
Result<std::unique_ptr<Kernel>> open_kernel(net::Family family, std::uint32_t mark);

}  // namespace shunt::backend::ipvs
