// The seam between the nftables back end and the kernel: read our table, commit changes. Tests put
// a table in memory here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/nft/ruleset.h"
#include "base/result.h"

namespace shunt::backend::nft {

// What the kernel holds of our table of one family.
struct TableState {
  bool exists = false;
  std::string comment;                       // carries the program's version
  std::vector<std::string> sets;             // names, in no order
  std::map<std::string, std::size_t> rules;  // chain -> number of rules; every chain is there
};

struct Transaction {
  // Set: everything of ours in this family goes and this program comes, in the same transaction as
  // the changes.
  const Program* replace_program = nullptr;
  bool delete_table = false;  // the table is there and must go first
  // Set: the chains of this program, which is there, are emptied and written anew, elements stay.
  const Program* rewrite_rules = nullptr;
  std::vector<Fragment> create;  // before the elements, which may lead there
  ElementChanges changes;
  Removal remove;  // after them
  bool empty() const {
    return replace_program == nullptr && rewrite_rules == nullptr && !delete_table &&
           create.empty() && changes.count == 0 && remove.empty();
  }
};

// Keys to look up, run by run.
struct KeyRuns {
  std::vector<KeyBytes> keys;
  std::vector<std::size_t> lengths;  // of the runs; their sum is the number of keys
};
// One run for each, so that it is looked up whether its neighbours are there or not.
inline KeyRuns each_alone(std::vector<KeyBytes> keys) {
  KeyRuns runs;
  runs.lengths.assign(keys.size(), 1);
  runs.keys = std::move(keys);
  return runs;
}

class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<TableState> read_table(net::Family family) = 0;
  // Errc::Again: the table changed meanwhile, or the kernel was just growing the set
  // (once_each.h): elements may have been left out, or come twice.
  virtual Result<> read_elements(
      net::Family family, const Set& set, const std::function<void(Element&&)>& each) = 0;
  // Of every run those that are there up to the first that is not. For sets that are too large to
  // be read whole: the kernel finds its place in a set by counting from the start for every 32 KiB,
  // so a whole set takes a time quadratic in its size.
  virtual Result<> find_elements(
      net::Family family,
      const Set& set,
      const KeyRuns& runs,
      const std::function<void(Element&&)>& each) = 0;
  // Some elements of one set, all or nothing: for a set that is not of the program.
  virtual Result<> delete_elements(
      net::Family family, const Set& set, std::span<const Element> elements) = 0;
  // All or nothing. `program` describes the sets that the changes speak of.
  virtual Result<Cost> commit(const Program& program, const Transaction& transaction) = 0;
};

}  // namespace shunt::backend::nft
