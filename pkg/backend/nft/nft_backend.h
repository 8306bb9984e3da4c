// The nftables back end of one address family (design.md §3): a constant program, and elements that
// follow the plans.
//
// Owned by the sync thread. Everything it knows of the kernel is in the mirror; when the kernel
// disagrees (a deletion of what is not there, an addition of what is) the table is read again and
// repaired.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/nft/affinity_purger.h"
#include "backend/nft/change_feed.h"
#include "backend/nft/damage.h"
#include "backend/nft/kernel_mirror.h"
#include "backend/nft/program.h"
#include "backend/nft/transport.h"

namespace shunt::backend::nft {

class NftBackend : public Backend {
 public:
  // Called when everything was applied, and again after every apply() while it fails. Not earlier:
  // with a listener the kernel makes a message of every element that is written.
  using OpenFeed = std::function<Result<std::unique_ptr<ChangeFeed>>()>;

  // In IPVS mode: what of a plan is the table's to do; null: nothing. Must not change between two
  // apply() that do not name the frontend.
  using Share = std::function<std::optional<desired::FrontendPlan>(
      const desired::FrontendKey&, const desired::FrontendPlan&)>;

  // Without `open_feed` others' changes are noticed only when they are in the way.
  NftBackend(
      net::Family family,
      const ProgramSettings& settings,
      std::unique_ptr<Transport> transport,
      std::unique_ptr<Purger> purger,
      OpenFeed open_feed = {},
      Share share = {});

  // Reads what an earlier run left.
  // `thorough`: every set is listed, however long it takes.
  Result<> adopt(bool thorough = false);
  Cost prepare(const desired::DesiredState& wanted, std::span<const desired::FrontendKey> frontends)
      override;
  ApplyReport apply(const desired::DesiredState& wanted, const Delta& delta) override;
  Result<> cleanup() override;
  int drift_fd() const override { return feed_ ? feed_->fd() : -1; }
  std::vector<Drift> take_drift() override;
  bool idle() const override { return purger_->idle(); }

  // Elements of one transaction while many frontends are written: the netfilter mutex is held for a
  // few milliseconds.
  static constexpr std::size_t kElementsPerTransaction = 20'000;
  // Written ahead when so many have come together; what is left over is apply()'s.
  static constexpr std::size_t kElementsAhead = 10'000;
  // With more frontends than this a table that was taken away comes back in bounded steps.
  static constexpr std::size_t kRestoredAtOnce = 2'000;
  // A map of slots that may hold more is looked up and not listed. To list 50 000 takes as long as
  // to look them up, 0.1 s.
  static constexpr std::size_t kListedSlots = 50'000;

 private:
  // How often one apply() reads the table again because the kernel contradicts the mirror.
  static constexpr int kRereads = 3;

  enum class Table : std::uint8_t {
    Ours,
    Absent,
    Empty,   // ours, with no frontend but, it may be, with endpoints that nothing leads to
    Foreign  // of another program
  };
  using Keys = std::vector<desired::FrontendKey>;

  Result<> read_elements(const TableState& state, bool thorough);
  Result<> read_set(const Set& set);
  Result<> read_slots(Place place, bool thorough);
  Result<> read_again(bool thorough);
  Result<> mend(Delta& rest, Cost& cost);
  void replace_table(const Error& why);
  void listen(ApplyReport& report);
  ApplyReport apply_once(const desired::DesiredState& wanted, const Delta& delta);
  void stage(const desired::DesiredState& wanted, const desired::FrontendKey& key);
  Keys keys_to_write(const desired::DesiredState& wanted, const Delta& delta) const;
  void write(const desired::DesiredState& wanted, const Keys& keys, ApplyReport& report);
  void write_refused(
      const desired::DesiredState& wanted,
      std::span<const desired::FrontendKey> keys,
      const Error& error,
      ApplyReport& report);
  bool stage_and_commit(
      const desired::DesiredState& wanted,
      std::span<const desired::FrontendKey> keys,
      ApplyReport& report);
  bool commit_staged(
      const desired::DesiredState& wanted,
      std::span<const desired::FrontendKey> keys,
      ApplyReport& report);
  void stage_settings(const desired::DesiredState& wanted);
  void stage_ranges(const desired::DesiredState& wanted);
  void collect(ApplyReport& report);
  Result<> send(Transaction transaction, Cost& cost);
  Result<> install_bare_program(Cost& cost);
  Result<> write_ahead(const desired::DesiredState& wanted, Cost& cost);
  bool staged_enough() const { return mirror_.staged() >= kElementsPerTransaction; }
  bool install_program(const desired::DesiredState& wanted, const Keys& keys, ApplyReport& report);

  net::Family family_;
  Program program_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Purger> purger_;
  OpenFeed open_feed_;
  Share share_;
  std::unique_ptr<ChangeFeed> feed_;
  bool feed_failed_ = false;  // and said so
  Damage damage_;             // that the next apply() mends
  KernelMirror mirror_;
  Table table_ = Table::Absent;
  bool adopted_ = false;
  // The table is there, and no frontend is in it yet, so what is written of endpoints is seen by
  // nobody.
  bool bare_ = false;
  bool preparing_ = true;                 // nothing was applied and nothing has failed
  std::set<desired::FrontendKey> ahead_;  // to be written ahead
  std::size_t ahead_elements_ = 0;
  bool everything_ = true;  // the next apply looks everywhere and sweeps
  bool stale_is_refusal_ = false;
  std::map<desired::FrontendKey, Error> set_aside_;
};

}  // namespace shunt::backend::nft
