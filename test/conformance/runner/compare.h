// Compares what a case expects with what was seen, both as JSON, and says in words where they
// differ.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shunt::conformance {

// Lists are sets unless said otherwise. Addresses, prefixes and endpoints compare by value, not by
// spelling. The expectation "any" accepts everything. Members of objects must match exactly, in
// both directions.
enum class Lists { AreSets, AreOrdered };

// "<where> <part>": the place of a part, for compare().
std::string within(const std::string& where, const std::string& part);

// One line for each difference: "<where>: expected <this>, seen <that>".
void compare(
    const std::string& where,
    const nlohmann::json& expected,
    const nlohmann::json& seen,
    std::vector<std::string>& differences,
    Lists lists = Lists::AreSets);

}  // namespace shunt::conformance
