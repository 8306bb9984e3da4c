// What the kernel holds of our table, read back through the wire, in a form that two states can be
// compared by.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/nft/keys.h"
#include "backend/nft/program.h"
#include "backend/nft/wire.h"

namespace shunt::test {

// set, key, data, comment. Where in its frontend's slots an endpoint sits is left out: that depends
// on history, and only that.
using TableContents = std::multiset<
    std::tuple<std::string, std::vector<std::uint8_t>, std::vector<std::uint8_t>, std::string>>;

// Of one set. Listed again while the kernel says that it changed meanwhile.
inline std::vector<backend::nft::Element> elements_of(
    backend::nft::KernelTransport& transport, net::Family family, const backend::nft::Set& set) {
  constexpr int kTries = 20;
  std::vector<backend::nft::Element> out;
  for (int left = kTries;; --left) {
    out.clear();
    const auto read = transport.read_elements(
        family, set, [&](backend::nft::Element&& element) { out.push_back(std::move(element)); });
    if (read) {
      return out;
    }
    if (read.error().code != Errc::Again || left == 0) {
      throw std::runtime_error(set.name + ": " + read.error().what);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

struct TableReading {
  TableContents contents;
  std::string gap;  // the slots of a frontend are not 0..K-1
  bool operator==(const TableReading&) const = default;
};

inline TableReading read_table(net::Family family) {
  using namespace backend::nft;  // NOLINT(google-build-using-namespace): a test's helper
  auto transport = KernelTransport::open();
  if (!transport) {
    throw std::runtime_error(transport.error().what);
  }
  const Program program = make_program(family, {});  // the sets are the same whatever the settings
  TableReading out;
  std::map<std::pair<std::string, desired::FrontendKey>, std::set<std::uint32_t>> slots;
  for (const Set& set : program.sets) {
    if (set.dynamic()) {
      continue;
    }
    for (const Element& element : elements_of(**transport, family, set)) {
      auto key = element.key.span();
      if (set.holds == Set::Holds::Endpoints) {
        const auto decoded = decode_slot(family, set.shape, element.key);
        slots[{set.name, decoded.value().frontend}].insert(decoded->slot);
        key = key.first(key.size() - 4);
      }
      const auto data = element.data.span();
      out.contents.emplace(
          set.name,
          std::vector<std::uint8_t>(key.begin(), key.end()),
          std::vector<std::uint8_t>(data.begin(), data.end()),
          element.text);
    }
  }
  for (const auto& [key, numbers] : slots) {
    if (*numbers.rbegin() != numbers.size() - 1) {
      out.gap = "slots of " + to_string(key.second) + " have a gap";
    }
  }
  return out;
}

// Of the network namespace of the calling thread. Throws when the slots of a frontend are not
// 0..K-1. Others may be at work on the table: what two listings agree on is taken.
inline TableContents table_contents(net::Family family) {
  constexpr int kTries = 20;
  TableReading out = read_table(family);
  for (int left = kTries; left > 0; --left) {
    const TableReading before = std::exchange(out, read_table(family));
    if (out != before) {
      continue;
    }
    if (!out.gap.empty()) {
      throw std::runtime_error(out.gap);
    }
    return std::move(out.contents);
  }
  throw std::runtime_error("no two listings of the table agree");
}

}  // namespace shunt::test
