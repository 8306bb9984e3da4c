// The device that holds the addresses of Services in IPVS mode, and the routes that decide which
// packets to them come to this host: libnl-route (route.cpp's neighbour).
//
// The addresses are there to be seen and to be taken for what they are by others (kube-proxy's
// device has the same name), but they are not local: their routes are taken out of the table
// `local` again. Otherwise every port of the host would answer at every address of a Service, the
// host would answer ARP for them, and the node's own connections would have them as their source.
// What is to be delivered here is marked by our nftables program, and a rule sends marked packets
// to a table of ours that has the addresses as local routes.
//
// One thread, in one network namespace: that of the thread that opens it. One object per family;
// the device is shared by both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/ip_address.h"

namespace shunt::netlink {

class RequestSocket;

class VirtualAddresses {
 public:
  static constexpr char kDevice[] = "kube-ipvs0";
  static constexpr std::uint32_t kRouteTable = 12'112;
  static constexpr std::uint32_t kRulePriority = 99;  // after the table `local` (0), before `main`

  // `mark`: a packet with this bit is delivered here. Changes nothing.
  static Result<std::unique_ptr<VirtualAddresses>> open(net::Family family, std::uint32_t mark);
  ~VirtualAddresses();

  // The device (type dummy, down) and the rule, each unless it is there. Errc::Unsupported: the
  // kernel has no dummy devices. Rule and routes say that they are the kernel's (RTPROT_KERNEL):
  // those of others systemd-networkd removes whenever it starts (networkd.conf(5),
  // ManageForeignRoutingPolicyRules=).
  Result<> set_up();
  Result<bool> has_rule();

  // Addresses of the device, of this family, sorted (no link-local ones of IPv6). Empty when there
  // is no device.
  Result<std::vector<net::IpAddress>> bound();
  // Those that table `local` has for the device, and those that our table has; sorted.
  Result<std::vector<net::IpAddress>> local_routes();
  Result<std::vector<net::IpAddress>> routes();

  struct Change {
    enum class What : std::uint8_t {
      Bind,  // address (host prefix, scope host) on the device; the kernel makes it local
      Unbind,
      Route,  // local route in our table, by lo
      Unroute,
      MakeLocal,  // local route in table `local`, as the kernel makes it
      MakeNotLocal
    } what;
    net::IpAddress address;
  };
  // Many in one packet, in this order, except that an address of IPv6 is made not local at the end:
  // the kernel makes it local only some time after it was bound, within a millisecond as a rule,
  // and this waits for that (two seconds at most without any progress; then Errc::Again for the
  // change). MakeLocal binds an address of IPv6 anew, for an instant it is nobody's. What is so
  // already (EEXIST; ENOENT, ESRCH, EADDRNOTAVAIL for what goes) is no failure. `refused` gets the
  // index of others. A failure: nothing is known of any.
  struct Refused {
    std::size_t index = 0;
    Error error;
  };
  Result<> apply(std::span<const Change> changes, std::vector<Refused>& refused);

  // Removes the rule and the routes of this family and, when the device has no address of the other
  // family left or there is no such family, the device. Idempotent.
  Result<> tear_down();

 private:
  VirtualAddresses(net::Family family, std::uint32_t mark, std::unique_ptr<RequestSocket> socket);
  struct Rules;  // that lead to our table
  Result<Rules> find_rules();
  Result<> keep_rules(bool wanted);
  Result<> remove_all(const std::vector<net::IpAddress>& addresses, Change::What what);

  net::Family family_;
  std::uint32_t mark_;
  std::unique_ptr<RequestSocket> socket_;
};

}  // namespace shunt::netlink
