#include "daemon/table_listing.h"

#include <sstream>
#include <utility>
#include <vector>

namespace shunt::test {
namespace {

constexpr char kElements[] = "elements = { ";

// Commas stand in comments as well.
std::set<std::string> split(const std::string& elements) {
  std::set<std::string> out;
  std::string element;
  bool quoted = false;
  const auto take = [&] {
    const auto first = element.find_first_not_of(" \t\n");
    // Only what packets write has an end.
    if (first != std::string::npos && element.find(" timeout ") == std::string::npos) {
      out.insert(element.substr(first, element.find_last_not_of(" \t\n") + 1 - first));
    }
    element.clear();
  };
  for (const char c : elements) {
    quoted = quoted != (c == '"');
    if (c == ',' && !quoted) {
      take();
    } else {
      element += c;
    }
  }
  take();
  return out;
}

// "map endpoints {" -> "endpoints"
std::string set_name(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  std::string name;
  words >> kind >> name;
  return kind == "set" || kind == "map" ? name : std::string();
}

}  // namespace

std::size_t TableListing::size(const std::string& set) const {
  const auto found = sets.find(set);
  return found == sets.end() ? 0 : found->second.size();
}

std::size_t TableListing::count(const std::string& set, const std::string& key) const {
  const auto found = sets.find(set);
  if (found == sets.end()) {
    return 0;
  }
  std::size_t count = 0;
  for (auto at = found->second.lower_bound(key); at != found->second.end(); ++at) {
    if (*at != key && !at->starts_with(key + " ")) {
      break;
    }
    ++count;
  }
  return count;
}

TableListing list_table(const World& world) {
  std::istringstream text(world.on_node("nft -s list table ip kube-shunt"));
  TableListing out;
  std::string set;
  for (std::string line; std::getline(text, line);) {
    if (const std::string name = set_name(line); !name.empty()) {
      set = name;
    }
    const auto begin = line.find(kElements);
    if (begin == std::string::npos) {
      out.program += line + "\n";
      continue;
    }
    std::string elements = line.substr(begin + sizeof kElements - 1);
    while (!elements.ends_with(" }") && std::getline(text, line)) {
      elements += "\n" + line;
    }
    elements.resize(elements.size() - 2);
    out.sets[set] = split(elements);
    std::erase_if(out.sets, [](const auto& entry) { return entry.second.empty(); });
  }
  return out;
}

std::string difference(const TableListing& before, const TableListing& after) {
  std::vector<std::string> lines;
  const auto compare = [&](const TableListing& one, const TableListing& other, const char* sign) {
    for (const auto& [set, elements] : one.sets) {
      const auto there = other.sets.find(set);
      for (const std::string& element : elements) {
        if (there == other.sets.end() || !there->second.contains(element)) {
          std::string line(sign);
          line.append(set).append(": ").append(element);
          lines.push_back(std::move(line));
        }
      }
    }
  };
  compare(before, after, "-");
  compare(after, before, "+");
  if (before.program != after.program) {
    lines.push_back("-" + before.program + "\n+" + after.program);
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size() && i < 20; ++i) {
    out.append(lines[i]).append("\n");
  }
  return out;
}

}  // namespace shunt::test
