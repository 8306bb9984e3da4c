// A kernel in memory, as the nftables back end sees it: one table, transactions that are all or
// nothing, and the errors that the real one gives (deleting what is not there: ENOENT; adding a map
// element with other data: EEXIST).
#pragma once

#include <array>
#include <cerrno>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "backend/nft/affinity_purger.h"
#include "backend/nft/transport.h"

namespace shunt::test {

struct FakeTable {
  using Elements = std::map<std::pair<backend::nft::KeyBytes, bool>, backend::nft::Element>;
  bool exists = false;
  std::string comment;
  std::map<std::string, std::size_t> rules;
  std::vector<std::string> set_names;
  std::array<Elements, backend::nft::kSetCount> sets;

  // What happened.
  int commits = 0;
  int program_writes = 0;
  int look_ups = 0;
  // Called before a transaction: an error makes it fail whole.
  std::function<Result<>(const backend::nft::Transaction&)> judge;
  // So many listings more of a set with two elements come while the kernel grows it: the first
  // element twice, and the last not.
  int grows = 0;
};

class FakeTransport : public backend::nft::Transport {
 public:
  explicit FakeTransport(std::shared_ptr<FakeTable> table) : table_(std::move(table)) {}

  Result<backend::nft::TableState> read_table(net::Family) override {
    return backend::nft::TableState{
        table_->exists, table_->comment, table_->set_names, table_->rules};
  }

  Result<> read_elements(
      net::Family,
      const backend::nft::Set& set,
      const std::function<void(backend::nft::Element&&)>& each) override {
    const FakeTable::Elements& elements = table_->sets[static_cast<std::size_t>(set.id)];
    const bool grows = elements.size() > 1 && table_->grows > 0;
    for (auto at = elements.begin(); at != elements.end(); ++at) {
      const bool left_out = grows && std::next(at) == elements.end();
      each(backend::nft::Element(left_out ? elements.begin()->second : at->second));
    }
    if (grows) {
      --table_->grows;
      return fail(Errc::Again, "the set grows");
    }
    return {};
  }

  Result<> find_elements(
      net::Family,
      const backend::nft::Set& set,
      const backend::nft::KeyRuns& runs,
      const std::function<void(backend::nft::Element&&)>& each) override {
    const auto& elements = table_->sets[static_cast<std::size_t>(set.id)];
    auto key = runs.keys.begin();
    for (const std::size_t length : runs.lengths) {
      ++table_->look_ups;
      const auto end = key + static_cast<std::ptrdiff_t>(length);
      for (; key != end; ++key) {
        const auto found = elements.find({*key, false});
        if (found == elements.end()) {
          break;
        }
        each(backend::nft::Element(found->second));
      }
      key = end;
    }
    return {};
  }

  Result<> delete_elements(
      net::Family, const backend::nft::Set&, std::span<const backend::nft::Element>) override {
    return fail(Errc::NotFound, "this kernel has no packets that write elements");
  }

  Result<backend::Cost> commit(
      const backend::nft::Program& program, const backend::nft::Transaction& transaction) override {
    if (table_->judge) {
      if (auto verdict = table_->judge(transaction); !verdict) {
        return tl::unexpected(verdict.error());
      }
    }
    FakeTable next = *table_;
    if (transaction.delete_table) {
      if (!next.exists) {
        return fail(Errc::Stale, "no table", ENOENT);
      }
      next.exists = false;
      next.sets = {};
      next.rules.clear();
      next.set_names.clear();
    }
    if (transaction.replace_program != nullptr) {
      write_program(next, program);
    }
    for (const auto& fragment : transaction.create) {
      write_fragment(next, fragment);
    }
    for (const std::string& chain : transaction.remove.chains) {
      if (next.rules.erase(chain) == 0) {
        return fail(Errc::Stale, "no such chain", ENOENT);
      }
    }
    for (const std::string& set : transaction.remove.sets) {
      if (std::erase(next.set_names, set) == 0) {
        return fail(Errc::Stale, "no such set", ENOENT);
      }
    }
    if (transaction.changes.count > 0 && !next.exists) {
      return fail(Errc::Stale, "no table", ENOENT);
    }
    for (std::size_t set = 0; set < backend::nft::kSetCount; ++set) {
      for (const auto& element : transaction.changes.deletions[set]) {
        if (next.sets[set].erase({element.key, element.interval_end}) == 0) {
          return fail(Errc::Stale, "no such element", ENOENT);
        }
      }
    }
    for (std::size_t set = 0; set < backend::nft::kSetCount; ++set) {
      for (const auto& element : transaction.changes.additions[set]) {
        const auto [at, added] =
            next.sets[set].try_emplace({element.key, element.interval_end}, element);
        if (!element.text.empty() && is_verdict(set) && !next.rules.contains(element.text)) {
          return fail(Errc::Stale, "no such chain", ENOENT);
        }
        if (!added && at->second.data != element.data) {
          return fail(Errc::Stale, "element exists with other data", EEXIST);
        }
      }
    }
    ++next.commits;
    *table_ = std::move(next);
    return backend::Cost{1, 1, 1};
  }

 private:
  static bool is_verdict(std::size_t set) {
    using backend::nft::SetId;
    return set >= static_cast<std::size_t>(SetId::StickyIps) &&
           set <= static_cast<std::size_t>(SetId::RememberNodePorts);
  }
  static void write_program(FakeTable& table, const backend::nft::Program& program) {
    table.exists = true;
    table.comment = program.comment;
    ++table.program_writes;
    write_fragment(table, program);
  }
  static void write_fragment(FakeTable& table, const backend::nft::Fragment& fragment) {
    for (const auto& set : fragment.sets) {
      table.set_names.push_back(set.name);
    }
    for (const auto& chain : fragment.chains) {
      table.rules.try_emplace(chain.name, 0);
    }
    for (const auto& rule : fragment.rules) {
      ++table.rules[rule.chain];
    }
  }

  std::shared_ptr<FakeTable> table_;
};

// Keeps what it was asked for.
class FakePurger : public backend::nft::Purger {
 public:
  using Purges = std::vector<backend::nft::Purge>;
  explicit FakePurger(std::shared_ptr<Purges> seen) : seen_(std::move(seen)) {}

  void purge(Purges purges) override { seen_->insert(seen_->end(), purges.begin(), purges.end()); }
  bool idle() const override { return true; }

 private:
  std::shared_ptr<Purges> seen_;
};

}  // namespace shunt::test
