#include "backend/leftovers/iptables_plan.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "backend/leftovers/kube_proxy_names.h"
#include "backend/leftovers/save_reader.h"

namespace shunt::backend::leftovers {
namespace {

// Above the kernel's 28; a longer name is none that iptables could have printed.
constexpr std::size_t kLongestChain = 64;

bool is_plain(std::string_view name) {
  return name.size() <= kLongestChain &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~' && c != '"'; });
}

bool is_known_table(std::string_view table) {
  return std::ranges::find(kTables, table) != std::end(kTables);
}

// One table of a listing, and what becomes of kube-proxy's chains in it.
class TableReader {
 public:
  TableReader(std::string_view table, IptablesMode mode) : table_(table), mode_(mode) {}

  void chain(std::string_view name) {
    if (is_leftover(table_, name, mode_) && is_plain(name) &&
        index_.try_emplace(name, chains_.size()).second) {
      chains_.push_back({name, {}, Fate::Goes});
    }
  }

  void rule(const SaveLine& line, std::string_view whole) {
    const auto own = index_.find(line.name);
    if (own != index_.end()) {
      for_each_mentioned(line.rest, [&](std::size_t to) {
        auto& leads = chains_[own->second].leads_to;
        if (leads.empty() || leads.back() != to) {
          leads.push_back(to);
        }
      });
      return;
    }
    const std::string_view target = line.rest.substr(line.rest.rfind(' ') + 1);
    if (index_.contains(target) && is_kube_proxy_jump(table_, line.name, line.rest)) {
      jumps_.append("-D ").append(line.name).append(" ").append(line.rest).append("\n");
      ++jump_count_;
      return;
    }
    foreign(line.rest, whole);
  }

  void unknown(std::string_view whole) { foreign(whole, whole); }

  TablePlan plan() {
    TablePlan out;
    out.table = table_;
    for (const auto& [chain, rule] : roots_) {
      if (chains_[chain].fate == Fate::Goes) {
        const std::size_t reached = keep(chain);
        out.kept.push_back({std::string(chains_[chain].name), presentable(rule), reached});
      }
    }
    std::string flush;
    std::string remove;
    for (const Chain& chain : chains_) {
      if (chain.fate == Fate::Goes) {
        out.chains.emplace_back(chain.name);
        flush.append(":").append(chain.name).append(" - [0:0]\n");
        remove.append("-X ").append(chain.name).append("\n");
      }
    }
    out.jumps = jump_count_;
    if (!out.chains.empty() || out.jumps > 0) {
      out.restore.append("*").append(table_).append("\n").append(flush).append(jumps_);
      out.restore.append(remove).append("COMMIT\n");
    }
    return out;
  }

 private:
  enum class Fate : std::uint8_t { Goes, Stays };
  struct Chain {
    std::string_view name;
    std::vector<std::size_t> leads_to;
    Fate fate;
  };

  // Calls `each` for every chain of kube-proxy's that the text names. A comment may name one, too,
  // which only costs that it stays.
  template <typename Each>
  void for_each_mentioned(std::string_view text, const Each& each) {
    std::size_t at = 0;
    while ((at = text.find("KUBE-", at)) != std::string_view::npos) {
      const std::string_view word =
          text.substr(at).substr(0, text.substr(at).find_first_of(" \t\r\"\\"));
      if (const auto found = index_.find(word); found != index_.end()) {
        each(found->second);
      }
      at += word.size();
    }
  }

  void foreign(std::string_view text, std::string_view whole) {
    for_each_mentioned(text, [&](std::size_t chain) { roots_.emplace_back(chain, whole); });
  }

  // Keeps it and all that it leads to; answers how many those were.
  std::size_t keep(std::size_t root) {
    std::size_t reached = 0;
    std::vector<std::size_t> open{root};
    chains_[root].fate = Fate::Stays;
    while (!open.empty()) {
      const std::size_t chain = open.back();
      open.pop_back();
      for (const std::size_t next : chains_[chain].leads_to) {
        if (chains_[next].fate == Fate::Goes) {
          chains_[next].fate = Fate::Stays;
          open.push_back(next);
          ++reached;
        }
      }
    }
    return reached;
  }

  std::string_view table_;
  IptablesMode mode_;
  std::vector<Chain> chains_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<std::pair<std::size_t, std::string_view>> roots_;  // chain, the foreign rule
  std::string jumps_;
  std::size_t jump_count_ = 0;
};

// The lines of one table, between its * and its COMMIT.
struct TableText {
  std::string_view name;
  std::vector<std::string_view> lines;
  bool complete = false;
};

std::vector<TableText> tables_of(std::string_view save) {
  std::vector<TableText> out;
  bool inside = false;
  for_each_line(save, [&](std::string_view line) {
    const SaveLine read = read_save_line(line);
    if (read.kind == SaveLine::Kind::Table) {
      out.push_back({read.name, {}, false});
      inside = true;
    } else if (inside && read.kind == SaveLine::Kind::Commit) {
      out.back().complete = true;
      inside = false;
    } else if (inside && read.kind != SaveLine::Kind::Nothing) {
      out.back().lines.push_back(line);
    }
  });
  return out;
}

TablePlan plan_table(const TableText& table, IptablesMode mode) {
  TableReader reader(table.name, mode);
  for (const std::string_view line : table.lines) {
    if (const SaveLine read = read_save_line(line); read.kind == SaveLine::Kind::Chain) {
      reader.chain(read.name);
    }
  }
  for (const std::string_view line : table.lines) {
    const SaveLine read = read_save_line(line);
    if (read.kind == SaveLine::Kind::Rule) {
      reader.rule(read, line);
    } else if (read.kind == SaveLine::Kind::Unknown) {
      reader.unknown(line);
    }
  }
  return reader.plan();
}

}  // namespace

bool is_leftover(std::string_view table, std::string_view chain, IptablesMode mode) {
  return is_kube_proxy_chain(table, chain) &&
         !(mode == IptablesMode::Ours && is_iptables_mode_chain(table, chain));
}

RemovalPlan plan_removal(std::string_view save, IptablesMode mode) {
  RemovalPlan out;
  std::vector<std::string_view> seen;
  for (const TableText& table : tables_of(save)) {
    if (!is_known_table(table.name)) {
      continue;
    }
    if (!table.complete) {
      out.issues.push_back("the listing of table " + std::string(table.name) + " ends early");
    } else if (std::ranges::find(seen, table.name) != seen.end()) {
      out.issues.push_back("table " + std::string(table.name) + " is listed twice");
    } else {
      out.tables.push_back(plan_table(table, mode));
    }
    seen.push_back(table.name);
  }
  return out;
}

bool has_kube_proxy_chain(std::string_view save, IptablesMode mode) {
  bool found = false;
  std::string_view table;
  for_each_line(save, [&](std::string_view line) {
    if (found || (!line.starts_with('*') && !line.starts_with(':'))) {
      return;
    }
    const SaveLine read = read_save_line(line);
    if (read.kind == SaveLine::Kind::Table) {
      table = read.name;
    } else if (read.kind == SaveLine::Kind::Chain) {
      found = is_leftover(table, read.name, mode);
    }
  });
  return found;
}

}  // namespace shunt::backend::leftovers
