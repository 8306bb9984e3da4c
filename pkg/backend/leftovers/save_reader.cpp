#include "backend/leftovers/save_reader.h"

namespace shunt::backend::leftovers {
namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::size_t kPresentable = 200;

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find_first_of(kBlank));
}

std::string_view after(std::string_view text, std::string_view word) {
  text.remove_prefix(word.size());
  const std::size_t start = text.find_first_not_of(kBlank);
  return start == std::string_view::npos
             ? std::string_view()
             : text.substr(start, text.find_last_not_of(kBlank) + 1 - start);
}

// "[12:3456] ", which iptables-save --counters writes in front of a rule.
std::string_view without_counters(std::string_view line) {
  if (line.starts_with('[')) {
    const std::size_t end = line.find("] ");
    return end == std::string_view::npos ? line : line.substr(end + 2);
  }
  return line;
}

}  // namespace

SaveLine read_save_line(std::string_view line) {
  using Kind = SaveLine::Kind;
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (line.find_first_not_of(kBlank) == std::string_view::npos || line.starts_with('#')) {
    return {Kind::Nothing, {}, {}};
  }
  if (line == "COMMIT") {
    return {Kind::Commit, {}, {}};
  }
  if (line.starts_with('*') && line.size() > 1) {
    return {Kind::Table, line.substr(1), {}};
  }
  if (line.starts_with(':')) {
    const std::string_view name = first_word(line.substr(1));
    return {name.empty() ? Kind::Unknown : Kind::Chain, name, {}};
  }
  const std::string_view rule = without_counters(line);
  if (rule.starts_with("-A ")) {
    const std::string_view text = after(rule, "-A");
    const std::string_view chain = first_word(text);
    return {chain.empty() ? Kind::Unknown : Kind::Rule, chain, after(text, chain)};
  }
  return {Kind::Unknown, {}, {}};
}

std::string presentable(std::string_view text) {
  std::string out(text.substr(0, kPresentable));
  for (char& c : out) {
    if (c < ' ' || c > '~') {
      c = '?';
    }
  }
  if (text.size() > kPresentable) {
    out += "...";
  }
  return out;
}

}  // namespace shunt::backend::leftovers
