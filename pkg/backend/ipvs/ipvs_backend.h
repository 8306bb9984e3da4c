// The IPVS back end of one address family (README.md): virtual servers, their addresses, and the
// nftables table in the form that IPVS mode needs.
//
// Owned by the sync thread. IPVS tells nobody of its changes: what it holds is known from reading
// it at the start, from the answers to our commands, and from looking again now and then.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/ipvs/kernel.h"
#include "backend/ipvs/server_table.h"
#include "backend/ipvs/service_addresses.h"
#include "backend/nft/nft_backend.h"
#include "base/unique_fd.h"
#include "net/cidr.h"

namespace shunt::backend::ipvs {

struct Settings {
  net::Family family = net::Family::IPv4;
  std::string scheduler = "rr";
  std::vector<net::Cidr> exclude_cidrs;  // virtual servers there are somebody else's
};

class IpvsBackend final : public Backend {
 public:
  // Makes the table's back end, with this as its `share`.
  using MakeNft = std::function<std::unique_ptr<nft::NftBackend>(nft::NftBackend::Share)>;

  IpvsBackend(Settings settings, std::unique_ptr<Kernel> kernel, const MakeNft& make_nft);

  Cost prepare(const desired::DesiredState& wanted, std::span<const desired::FrontendKey> frontends)
      override;
  ApplyReport apply(const desired::DesiredState& wanted, const Delta& delta) override;
  Result<> cleanup() override;
  int drift_fd() const override { return events_.get(); }
  std::vector<Drift> take_drift() override;
  bool has_news() const override { return host_changed_; }
  bool idle() const override { return nft_->idle(); }

  // How often destinations that leave are asked for their connections.
  static constexpr std::chrono::seconds kDrainPeriod{5};
  // How often the kernel's virtual servers are compared with what they should be.
  static constexpr std::chrono::seconds kAuditPeriod{60};

 private:
  using Keys = std::vector<desired::FrontendKey>;
  // Of one apply().
  struct Run {
    const desired::DesiredState& wanted;
    bool everything = false;
    Keys keys;
    ServerTable::Stages stages;
    ServiceAddresses::Changes addresses;
    std::map<desired::FrontendKey, Error> refused;
    ApplyReport report;
  };

  Result<> adopt();
  Result<> restore_rule();
  void read_host_addresses(const desired::DesiredState& wanted);
  ApplyReport apply_once(const desired::DesiredState& wanted, const Delta& delta);
  void choose_keys(Run& run, const Delta& delta, bool node_ports_moved) const;
  void stage(Run& run, const desired::FrontendKey& key);
  std::vector<ServerKey> servers_of(const desired::FrontendKey& key) const;
  std::string scheduler_of(const desired::FrontendPlan& plan);
  bool can_use(const std::string& scheduler);
  bool is_excluded(const net::IpAddress& ip) const;

  Result<> carry_out(const Commands& commands, Run& run);
  Result<> change_addresses(const std::vector<ServiceAddresses::Change>& changes, Run& run);
  Result<> write(Run& run, const Delta& delta);
  Result<> write_table(Run& run, const Delta& delta);
  Result<> remove_reals(Run& run);
  Result<> remove_servers(Run& run);
  void add_draining(Run& run);
  Result<bool> is_as_left();
  void finish(Run& run);
  std::optional<desired::FrontendPlan> share(
      const desired::FrontendKey& key, const desired::FrontendPlan& plan) const;

  Settings settings_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<nft::NftBackend> nft_;
  UniqueFd events_;      // epoll: word of the host's addresses and rules, and the table's drift
  int nft_events_ = -1;  // that is in `events_`
  bool host_changed_ = false;
  bool rule_gone_ = false;  // somebody took it away

  bool adopted_ = false;
  bool everything_ = true;  // the next apply looks everywhere, and removes what nobody wants
  bool nft_wants_everything_ = false;
  ServerTable servers_;
  ServiceAddresses addresses_;
  std::vector<net::IpAddress> node_port_addresses_;  // where NodePorts answer
  bool node_ports_known_ = false;
  std::map<std::string, bool> schedulers_;  // usable?
  std::set<desired::FrontendKey> set_aside_;

  // Destinations of weight 0 that leave when their connections have ended.
  std::map<ServerKey, std::set<net::SocketAddress>> draining_;
  Clock::time_point drain_due_{};
  Clock::time_point audit_due_{};
};

}  // namespace shunt::backend::ipvs
