// Ends the IPVS mode, kube-proxy's or ours, on a node that balances by nftables now: connections
// that go through IPVS go on until they end by themselves, new ones are nftables', and in the end
// no virtual server, no address, no device, no rule and no route is left.
//
//   begin()   before nftables' program is written: packets to addresses of Services are delivered
//             here even when nobody marks them, so that connections of IPVS go on
//   step()    once nftables serves (after the first sync), and again every few seconds until it
//             says that it is done: nothing new by IPVS; what has no connections goes
//
// It remembers nothing: what is to be done shows in the kernel, so that a restart, and a second
// object, go on where the first one was. What it takes for Services' is said in withdrawal_plan.h;
// excluded ranges, servers that are found by a packet mark, and addresses that are not this host's
// are never touched. An address of an excluded range on the device stays, and the device with it.
//
// One thread at a time, in one network namespace: that of the thread that opens it. It blocks for
// as long as the kernel takes: a question for every virtual server that is left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/ipvs/withdrawal_plan.h"
#include "base/result.h"
#include "netlink/virtual_addresses.h"

namespace shunt::backend::ipvs {

class Withdrawal {
 public:
  struct Options {
    std::vector<net::Family> families;  // of the host
    std::vector<net::Cidr> exclude_cidrs;
  };

  // Whether there is a kube-ipvs0 in the network namespace of the thread: nothing else needs to be
  // withdrawn. Costs next to nothing.
  static bool is_needed();

  // Asks the kernel for IPVS only when there is the device.
  static Result<std::unique_ptr<Withdrawal>> open(Options options);
  ~Withdrawal();

  Result<> begin();

  struct Progress {
    bool done = false;  // nothing is left but what is excluded; further steps find nothing to do
    Remaining left;
    std::vector<std::string> failed;  // what the kernel refused, each tried again by the next step
    std::string summary() const;      // "3 servers, 5 connections, 2 addresses"
  };
  // A failure: the kernel did not answer; the next step tries again.
  Result<Progress> step();

  // All of it at once: connections that IPVS balances break. For --cleanup, and for
  // --cleanup-kube-proxy. The error names what the kernel refused.
  Result<> remove_now();

 private:
  explicit Withdrawal(Options options);
  struct Side;  // of one family
  Result<Holdings> look(Side& side);
  Result<bool> pass(Side& side, bool now, Progress& progress);
  Result<Progress> passes(bool now);

  Options options_;
  std::unique_ptr<netlink::ipvs::Socket> servers_;  // null without IPVS
  std::vector<Side> sides_;
};

}  // namespace shunt::backend::ipvs
