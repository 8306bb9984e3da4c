// The iptables back end of one address family (README.md): kube-proxy's chains and rules, of which
// only those that change are written.
//
// Owned by the sync thread, which waits while iptables-restore runs. iptables tells nobody of
// changes: half a second at most after one of them a number in the kernel is seen to be another,
// and then everything of ours is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/iptables/kernel_rules.h"
#include "backend/iptables/tables.h"
#include "base/unique_fd.h"

namespace shunt::backend::iptables {

struct Settings {
  FrameSettings frame;
  LocalDetector detector;
  bool masquerade_all = false;
  // Everything is read so often where the kernel's number may miss something: the legacy variant.
  Millis audit_period{30'000};
};

class IptablesBackend final : public Backend {
 public:
  IptablesBackend(Settings settings, std::unique_ptr<Tables> tables);

  ApplyReport apply(const desired::DesiredState& wanted, const Delta& delta) override;
  Result<> cleanup() override;
  int drift_fd() const override { return timer_.get(); }
  std::vector<Drift> take_drift() override;

  // How often the kernel's number is looked at.
  static constexpr Millis kLookPeriod{500};

 private:
  // Of one apply().
  struct Run {
    const desired::DesiredState& wanted;
    KernelRules::Wanted ports;  // those to write, with their rules
    Frame frame;
    ApplyReport report;
  };

  Result<Listing> read();
  Result<> take_in(const desired::DesiredState& wanted);
  bool follow_ranges(const desired::DesiredState& wanted);
  std::set<PortId> touched_ports(
      const desired::DesiredState& wanted, const std::vector<desired::FrontendKey>& keys);
  PortRules rules_of(const desired::DesiredState& wanted, const PortId& id) const;
  Frame wanted_frame() const;
  static std::vector<PortId> ids_of(const Run& run);
  Result<> write(Run& run);
  Result<> write_apart(Run& run);
  void write_ports(Run& run, std::span<const PortId> ids);
  Result<> commit(const Document& document, ApplyReport& report);
  void settled(Run& run, const PortId& id);
  void set_aside(Run& run, const PortId& id, const Error& why);
  ApplyReport failed(Run& run, const Delta& delta, const Error& why);
  bool only_others_changed();
  void rest_after(Clock::time_point begin);
  void learn_words(const ApplyReport& report);

  Settings settings_;
  std::unique_ptr<Tables> tables_;
  UniqueFd timer_;

  Style style_;
  std::optional<Rules> node_ports_;  // the end of KUBE-SERVICES, once it is known
  std::map<PortId, std::set<desired::FrontendKey>> frontends_;
  std::unordered_map<desired::FrontendKey, PortId> owners_;
  std::set<PortId> set_aside_;

  KernelRules kernel_;
  bool known_ = false;                // `kernel_` is what the kernel has
  std::vector<ChainName> kept_;       // by the commits of this apply(), see KernelRules::keep
  std::optional<Listing> seen_;       // by take_drift(), for the next apply()
  std::optional<bool> words_differ_;  // see KernelRules::compare

  std::optional<std::uint64_t> generation_;
  std::optional<std::uint64_t> fingerprint_;  // at that generation
  Clock::time_point audit_due_{};
  Clock::time_point look_due_{};
};

}  // namespace shunt::backend::iptables
