// The part of the back end that reads what is there, from an earlier run or after others' changes,
// into the mirror.
#include <thread>
#include <utility>
#include <vector>

#include "backend/nft/nft_backend.h"
#include "backend/nft/table_check.h"

namespace shunt::backend::nft {
namespace {

// Before a table is read again that changed while it was read, twice as long with every time: the
// kernel grows a set of 50 000 elements in some 10 ms, when it gets to it.
constexpr Millis kSettle{5};

}  // namespace

Result<> NftBackend::read_set(const Set& set) {
  return transport_->read_elements(
      family_, set, [&](Element&& element) { mirror_.adopt(set, element); });
}

Result<> NftBackend::read_slots(Place place, bool thorough) {
  const Set& set = set_in(program_, slot_map(place));
  const std::vector<KernelMirror::Occupied> occupied = mirror_.occupied(place);
  std::size_t most = 0;
  for (const auto& one : occupied) {
    most += one.slots;
  }
  if (thorough || most <= kListedSlots) {
    return read_set(set);
  }
  KeyRuns runs;
  for (std::size_t i = 0; i < occupied.size(); ++i) {
    for (std::uint32_t slot = 0; slot < occupied[i].slots; ++slot) {
      runs.keys.push_back(encode_slot(occupied[i].frontend, slot));
    }
    runs.lengths.push_back(occupied[i].slots);
    if (runs.keys.size() >= kElementsPerTransaction || i + 1 == occupied.size()) {
      auto done = transport_->find_elements(
          family_, set, runs, [&](Element&& element) { mirror_.adopt(set, element); });
      if (!done) {
        return done;
      }
      runs = {};
    }
  }
  return {};
}

Result<> NftBackend::read_elements(const TableState& state, bool thorough) {
  for (const auto& [chain, rules] : state.rules) {
    if (is_affinity_chain(chain)) {
      mirror_.adopt_chain(chain);
    }
  }
  // The slots last: the other sets say which there are.
  for (const Set& set : program_.sets) {
    if (!set.dynamic() && set.holds != Set::Holds::Endpoints) {
      if (auto done = read_set(set); !done) {
        return done;
      }
    }
  }
  if (mirror_.unfinished() && !mirror_.has_frontends()) {
    table_ = Table::Empty;
    mirror_.clear();
    return {};
  }
  thorough = thorough || mirror_.unfinished();
  for (const Place place : kPlaces) {
    if (auto done = read_slots(place, thorough); !done) {
      return done;
    }
  }
  if (!mirror_.finish_adoption(Clock::now()) && !thorough) {
    return fail(Errc::Stale, "endpoints are missing from the table");
  }
  return {};
}

Result<> NftBackend::adopt(bool thorough) {
  Result<> done;
  for (int attempt = 0; attempt <= kRereads; ++attempt) {
    mirror_.clear();
    everything_ = true;
    const Result<TableState> state = transport_->read_table(family_);
    if (!state) {
      done = tl::unexpected(state.error());
    } else if (!state->exists) {
      table_ = Table::Absent;
      done = {};
    } else if (!is_whole(*state, program_)) {
      table_ = Table::Foreign;
      done = {};
    } else {
      table_ = Table::Ours;
      done = read_elements(*state, thorough);
    }
    if (done || (done.error().code != Errc::Again && done.error().code != Errc::Stale)) {
      break;
    }
    if (done.error().code == Errc::Again && attempt < kRereads) {
      std::this_thread::sleep_for(kSettle * (1 << attempt));
    }
    thorough = thorough || done.error().code == Errc::Stale;
  }
  adopted_ = done.has_value();
  return done;
}

}  // namespace shunt::backend::nft
