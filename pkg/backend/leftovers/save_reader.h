// What iptables-save prints, line by line, as views into it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shunt::backend::leftovers {

struct SaveLine {
  enum class Kind : std::uint8_t {
    Nothing,  // a comment or an empty line
    Table,    // *nat
    Chain,    // :KUBE-SERVICES - [0:0]
    Rule,     // -A KUBE-SERVICES -j RETURN
    Commit,
    Unknown
  };
  Kind kind = Kind::Unknown;
  std::string_view name;  // of the table or chain; of a rule, the chain it stands in
  std::string_view rest;  // of a rule: what follows the chain, without blanks around it
};

SaveLine read_save_line(std::string_view line);

template <typename Each>
void for_each_line(std::string_view save, const Each& each) {
  while (!save.empty()) {
    const std::size_t end = save.find('\n');
    each(save.substr(0, end));
    save.remove_prefix(end == std::string_view::npos ? save.size() : end + 1);
  }
}

// For a report: one line, printable, of a bearable length.
std::string presentable(std::string_view text);

}  // namespace shunt::backend::leftovers
