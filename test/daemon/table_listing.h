// What nft prints of our IPv4 table, taken apart: the elements of each set and map, without what
// packets write there.
#pragma once

#include <map>
#include <set>
#include <string>

#include "daemon/world.h"

namespace shunt::test {

struct TableListing {
  // By set; an element is its text, "10.112.0.10 . tcp . 80 comment \"ns/web:p\" : goto service".
  std::map<std::string, std::set<std::string>> sets;
  std::string program;  // the rest: chains, and what sets are declared to be

  std::size_t size(const std::string& set) const;
  // The elements of a set whose key is this, "10.112.0.10 . tcp . 80", or begins so.
  std::size_t count(const std::string& set, const std::string& key) const;
  bool has(const std::string& set, const std::string& key) const { return count(set, key) > 0; }
};

// Throws when nft cannot list it.
TableListing list_table(const World& world);

// A line for each element that only one of the two has, twenty at most; "" when there is none.
std::string difference(const TableListing& before, const TableListing& after);

}  // namespace shunt::test
