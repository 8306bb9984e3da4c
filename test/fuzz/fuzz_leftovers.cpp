// Whatever iptables-save prints, the plan for iptables-restore speaks of kube-proxy's chains alone,
// deletes only jumps that stand in the listing, and is a text that iptables-restore can read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "backend/leftovers/iptables_plan.h"
#include "backend/leftovers/kube_proxy_names.h"
#include "promises.h"

namespace shunt {
namespace {

using backend::leftovers::is_kube_proxy_chain;
using backend::leftovers::KeptChain;
using backend::leftovers::plan_removal;
using backend::leftovers::RemovalPlan;
using backend::leftovers::TablePlan;
using fuzz::promise;

bool is_jump_of(std::string_view save, const std::string& table, const std::string& deletion) {
  std::istringstream words(deletion);
  std::string option;
  std::string from;
  words >> option >> from;
  const std::string target = deletion.substr(deletion.rfind("-j ") + 3);
  const std::string rule = deletion.substr(deletion.find(from) + from.size() + 1);
  return save.find(from) != std::string_view::npos && save.find(rule) != std::string_view::npos &&
         !is_kube_proxy_chain(table, from) &&
         is_kube_proxy_chain(table, target.substr(0, target.find_first_of(" \t\r")));
}

void promise_restore(std::string_view save, const TablePlan& plan) {
  std::set<std::string> flushed;
  std::set<std::string> removed;
  std::size_t jumps = 0;
  std::istringstream lines(plan.restore);
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    if (line.starts_with(":")) {
      const std::string chain = line.substr(1, line.find(' ') - 1);
      promise(is_kube_proxy_chain(plan.table, chain), "only kube-proxy's chains are flushed");
      promise(flushed.insert(chain).second, "a chain is declared once");
    } else if (line.starts_with("-X ")) {
      promise(removed.insert(line.substr(3)).second, "a chain is removed once");
    } else if (line.starts_with("-D ")) {
      ++jumps;
      promise(is_jump_of(save, plan.table, line), "a jump that goes is one of kube-proxy's");
    } else {
      promise(line == "*" + plan.table || line == "COMMIT", "no other line is written");
    }
  }
  promise(flushed == removed, "what is flushed goes");
  promise(plan.chains.size() == removed.size() && plan.jumps == jumps, "the report counts right");
  promise(plan.restore.empty() || last == "COMMIT", "the text is complete");
  for (const KeptChain& kept : plan.kept) {
    promise(!flushed.contains(kept.chain), "what stays is not flushed");
    promise(fuzz::is_one_printable_line(kept.rule) && kept.rule.size() < 300, "a rule is one line");
  }
}

}  // namespace
}  // namespace shunt

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view save(reinterpret_cast<const char*>(data), size);
  const shunt::RemovalPlan plan = shunt::plan_removal(save);
  for (const shunt::TablePlan& table : plan.tables) {
    shunt::promise_restore(save, table);
    shunt::promise(
        (table.restore.empty() && table.kept.empty()) || !table.chains.empty() ||
            shunt::backend::leftovers::has_kube_proxy_chain(save),
        "what is planned is also found");
  }
  return 0;
}
