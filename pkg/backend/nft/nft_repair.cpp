// The part of the back end that hears of what others do to the table and undoes it; damage.h says
// what was touched.
#include <utility>

#include "backend/nft/nft_backend.h"
#include "backend/nft/table_check.h"
#include "base/log.h"

namespace shunt::backend::nft {

// From now on others' changes are heard. What happened before, since the table was read, is not
// known: whether the program is whole is looked up.
void NftBackend::listen(ApplyReport& report) {
  if (feed_ || !open_feed_) {
    return;
  }
  auto opened = open_feed_();
  if (!opened) {
    if (!std::exchange(feed_failed_, true)) {
      log::warn(
          "changes of our table by others are noticed late",
          {log::kv("family", net::to_string(family_)), log::kv("error", opened.error().what)});
    }
    return;
  }
  feed_ = std::move(*opened);
  const Result<TableState> state = transport_->read_table(family_);
  if (!state || !state->exists || !is_whole(*state, program_)) {
    damage_.everything = true;
    damage_.rules = true;
    report.again_in = Millis{0};
  }
}

std::vector<Drift> NftBackend::take_drift() {
  return feed_ ? damage_.add(program_, feed_->take()) : std::vector<Drift>{};
}

// Undoes what others did to the program, and makes the mirror true of the rest, so that writing
// those frontends mends them.
Result<> NftBackend::mend(Delta& rest, Cost& cost) {
  if (auto done = examine(*transport_, program_, damage_, mirror_); !done) {
    return done;
  }
  Transaction transaction;
  if (damage_.rules) {
    transaction.rewrite_rules = &program_;
    transaction.remove.chains.assign(damage_.chains.begin(), damage_.chains.end());
  }
  mirror_.stage_strays();
  for (const SetId set : damage_.intervals) {
    mirror_.stage_anew(set);
  }
  if (auto done = send(std::move(transaction), cost); !done) {
    return done;
  }
  for (const auto& [key, slots] : damage_.frontends) {
    rest.frontends.push_back(key);
  }
  damage_ = {};
  return {};
}

// A base chain on another hook, a set of another type under our name: all of it is replaced.
void NftBackend::replace_table(const Error& why) {
  log::warn(
      "the table cannot be mended, it is written anew",
      {log::kv("family", net::to_string(family_)), log::kv("error", why.what)});
  table_ = Table::Foreign;
  everything_ = true;
  damage_ = {};
}

Result<> NftBackend::read_again(bool thorough) {
  auto done = adopt(thorough);
  if (done) {
    Damage left;  // that reading does not show
    if (table_ == Table::Ours) {
      left.rules = damage_.rules;
      left.chains = std::move(damage_.chains);
    }
    damage_ = std::move(left);
  }
  return done;
}

}  // namespace shunt::backend::nft
