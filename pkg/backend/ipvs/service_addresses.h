// The addresses of Services on our device, and the changes that make them what frontends want.
// Pure.
//
// An address is bound while a frontend has it: of a ClusterIP always, others unless another device
// of the host has the address (spec/ipvs.md §4), which is then the host's own. A bound address has
// a route in our table and, once the nftables program marks its packets, none in the table `local`.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/ipvs/kernel.h"
#include "desired/frontend.h"

namespace shunt::backend::ipvs {

class ServiceAddresses {
 public:
  // What the kernel has, each sorted.
  struct Found {
    std::vector<net::IpAddress> bound;
    std::vector<net::IpAddress> local;
    std::vector<net::IpAddress> routed;
  };
  static Result<Found> look(Kernel& kernel);

  void adopt(const Found& found);  // what frontends want stays
  void set_host_addresses(std::set<net::IpAddress> addresses);
  const std::set<net::IpAddress>& host_addresses() const { return host_; }
  // Whether that is what adopt() and follow() made of it.
  bool is(const Found& found) const;
  std::vector<net::IpAddress> bound() const { return {bound_.begin(), bound_.end()}; }

  // Nothing: the frontend is gone. NodePorts have no address of their own.
  void want(const desired::FrontendKey& frontend, std::optional<desired::Reach> reach);

  // What is touched by want() since the last call, or all there is: changes before the nftables
  // program is written, and after it.
  using Change = Kernel::AddressChange;
  struct Changes {
    std::vector<Change> before;
    std::vector<Change> after;
  };
  Changes stage(bool everything);
  void follow(const Change& change);  // the kernel did it
  void retry(const net::IpAddress& ip) { touched_.insert(ip); }

 private:
  struct Users {
    std::uint32_t internal = 0;
    std::uint32_t external = 0;
  };
  void count(const net::IpAddress& ip, desired::Reach reach, bool more);
  bool is_wanted(const net::IpAddress& ip) const;

  std::unordered_map<desired::FrontendKey, desired::Reach> frontends_;
  std::unordered_map<net::IpAddress, Users> users_;
  std::set<net::IpAddress> touched_;
  std::set<net::IpAddress> host_;
  std::set<net::IpAddress> bound_;
  std::set<net::IpAddress> local_;
  std::set<net::IpAddress> routed_;
};

}  // namespace shunt::backend::ipvs
