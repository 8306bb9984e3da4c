// A kernel in memory, as the iptables back end sees it: chains and rules as texts, changed by the
// inputs of iptables-restore, each commit whole or not at all, with the refusals of the real one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backend/iptables/tables.h"

namespace shunt::test {

struct FakeIptables {
  using Chains = std::map<std::string, std::vector<std::string>>;
  std::map<std::string, Chains> tables{
      {"filter", {{"INPUT", {}}, {"FORWARD", {}}, {"OUTPUT", {}}}},
      {"nat", {{"PREROUTING", {}}, {"INPUT", {}}, {"OUTPUT", {}}, {"POSTROUTING", {}}}}};
  std::uint64_t generation = 1;
  bool tells_fingerprint = true;  // as iptables-nft

  std::vector<std::string> inputs;  // of iptables-restore, refused ones as well
  std::size_t reads = 0;
  std::optional<Error> fault;  // of the next restore, once
  std::function<bool(const std::string& line)> refuses = [](const std::string&) { return false; };

  // As `iptables -t table ...` would; throws what the restore answers.
  void change(const std::string& table, const std::string& line) {
    if (auto done = restore("*" + table + "\n" + line + "\nCOMMIT\n"); !done) {
      throw std::runtime_error(done.error().what);
    }
  }

  Result<> restore(const std::string& text) {
    std::istringstream lines(text);
    std::string table;
    Chains staged;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('*')) {
        table = line.substr(1);
        staged = tables.at(table);
      } else if (line == "COMMIT") {
        for (const auto& [chain, rules] : staged) {
          for (const std::string& rule : rules) {
            if (const auto target = target_of(rule); target && !staged.contains(*target)) {
              return fail(Errc::Invalid, "no chain " + *target);
            }
          }
        }
        tables[table] = std::exchange(staged, {});
        ++generation;
      } else if (refuses(line) || !obey(line, staged)) {
        return fail(Errc::Invalid, "refused: " + line);
      }
    }
    return {};
  }

  std::string save(const std::string& table) const {
    std::string out = "# Generated\n*" + table + "\n";
    for (const auto& [chain, rules] : tables.at(table)) {
      out += ":" + chain + (chain.starts_with("KUBE") ? " - [0:0]\n" : " ACCEPT [0:0]\n");
    }
    for (const auto& [chain, rules] : tables.at(table)) {
      for (const std::string& rule : rules) {
        out.append("-A ").append(chain).append(" ").append(rule).append("\n");
      }
    }
    return out + "COMMIT\n# Completed\n";
  }

 private:
  static std::optional<std::string> target_of(const std::string& rule) {
    const std::size_t at = rule.find("-j ");
    if (at == std::string::npos) {
      return std::nullopt;
    }
    std::string target = rule.substr(at + 3, rule.find(' ', at + 3) - at - 3);
    return target.starts_with("KUBE-") ? std::optional(target) : std::nullopt;
  }

  static bool leads_to(const Chains& chains, const std::string& wanted) {
    return std::ranges::any_of(chains, [&](const auto& chain) {
      return std::ranges::any_of(
          chain.second, [&](const std::string& rule) { return target_of(rule) == wanted; });
    });
  }

  static bool obey(const std::string& line, Chains& chains) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb.starts_with(':')) {
      chains[verb.substr(1)].clear();
      return true;
    }
    std::string chain;
    std::string rule;
    words >> chain >> std::ws;
    std::getline(words, rule);
    if (verb == "-N") {
      return chains.try_emplace(chain).second;
    }
    const auto found = chains.find(chain);
    if (found == chains.end()) {
      return false;
    }
    auto& rules = found->second;
    if (verb == "-A") {
      rules.push_back(rule);
    } else if (verb == "-I") {
      rules.insert(rules.begin(), rule);
    } else if (verb == "-D") {
      const auto at = std::ranges::find(rules, rule);
      if (at == rules.end()) {
        return false;
      }
      rules.erase(at);
    } else if (verb == "-X") {
      if (!rules.empty() || leads_to(chains, chain)) {
        return false;
      }
      chains.erase(found);
    } else {
      return false;
    }
    return true;
  }
};

class FakeTables final : public backend::iptables::Tables {
 public:
  explicit FakeTables(std::shared_ptr<FakeIptables> state) : state_(std::move(state)) {}

  Result<std::string> save(backend::iptables::Table table) override {
    ++state_->reads;
    return state_->save(std::string(to_string(table)));
  }
  Result<> restore(const std::string& text) override {
    state_->inputs.push_back(text);
    if (auto fault = std::exchange(state_->fault, {})) {
      return tl::unexpected(*fault);
    }
    return state_->restore(text);
  }
  std::optional<std::uint64_t> generation() override { return state_->generation; }
  bool counts_commits() const override { return state_->tells_fingerprint; }
  std::optional<std::uint64_t> fingerprint() override {
    if (!state_->tells_fingerprint) {
      return std::nullopt;
    }
    std::string seen;
    for (const auto& [table, chains] : state_->tables) {
      for (const auto& [chain, rules] : chains) {
        if (chain.starts_with("KUBE-") || chain.ends_with("PUT") || chain.ends_with("ING")) {
          seen.append(table).append(chain);
          for (const std::string& rule : rules) {
            seen.append("\n").append(rule);
          }
        }
      }
    }
    return std::hash<std::string>()(seen);
  }

 private:
  std::shared_ptr<FakeIptables> state_;
};

}  // namespace shunt::test
