// iptables in memory: a listing read into chains and rules, and what iptables-restore --noflush
// makes of it. Refuses what the real one refuses: a chain that is not there, or that a rule still
// leads to.
#pragma once

#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace shunt::test {

struct ChainText {
  std::string head;  // the line that declares it
  std::vector<std::string> rules;
  bool operator==(const ChainText&) const = default;
};
using TableChains = std::map<std::string, ChainText>;

// Of a well-formed listing of one table.
inline TableChains read_table(const std::string& save) {
  TableChains out;
  std::istringstream lines(save);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(":")) {
      out[line.substr(1, line.find(' ') - 1)].head = line;
    } else if (line.starts_with("-A ")) {
      const std::string chain = line.substr(3, line.find(' ', 3) - 3);
      out[chain].rules.push_back(line.substr(line.find(' ', 3) + 1));
    }
  }
  return out;
}

inline bool leads_to(const TableChains& table, const std::string& chain) {
  for (const auto& [name, text] : table) {
    for (const std::string& rule : text.rules) {
      const std::string padded = rule + " ";
      if (padded.find("-j " + chain + " ") != std::string::npos ||
          padded.find("-g " + chain + " ") != std::string::npos) {
        return true;
      }
    }
  }
  return false;
}

// Nothing when iptables-restore would refuse it.
inline std::optional<TableChains> restored(TableChains table, const std::string& restore) {
  std::istringstream lines(restore);
  bool committed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(":")) {
      table[line.substr(1, line.find(' ') - 1)] = {line, {}};
    } else if (line.starts_with("-D ")) {
      const std::size_t end = line.find(' ', 3);
      const auto chain = table.find(line.substr(3, end - 3));
      if (chain == table.end()) {
        return std::nullopt;
      }
      auto& rules = chain->second.rules;
      auto rule = rules.begin();
      while (rule != rules.end() && *rule != line.substr(end + 1)) {
        ++rule;
      }
      if (rule == rules.end()) {
        return std::nullopt;
      }
      rules.erase(rule);
    } else if (line.starts_with("-X ")) {
      const std::string chain = line.substr(3);
      if (!table.contains(chain) || leads_to(table, chain)) {
        return std::nullopt;
      }
      table.erase(chain);
    } else if (line == "COMMIT") {
      committed = true;
    } else if (!line.starts_with("*")) {
      return std::nullopt;
    }
  }
  return committed ? std::optional(std::move(table)) : std::nullopt;
}

}  // namespace shunt::test
