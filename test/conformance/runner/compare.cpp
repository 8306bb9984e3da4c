#include "runner/compare.h"

#include <algorithm>
#include <set>

#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::conformance {
namespace {

using nlohmann::json;

// The one spelling of what reads as an address; other text unchanged.
std::string canonical(const std::string& text) {
  if (const auto address = net::parse_socket_address(text)) {
    return net::to_string(*address);
  }
  if (const auto cidr = net::parse_cidr(text)) {
    return net::to_string(*cidr);
  }
  if (const auto ip = net::parse_ip(text)) {
    return net::to_string(*ip);
  }
  return text;
}

json canonical(const json& value, Lists lists) {
  if (value.is_string()) {
    return canonical(value.get<std::string>());
  }
  if (value.is_object()) {
    json object = json::object();
    for (const auto& [key, member] : value.items()) {
      object[key] = canonical(member, lists);
    }
    return object;
  }
  if (value.is_array()) {
    json array = json::array();
    for (const json& item : value) {
      array.push_back(canonical(item, lists));
    }
    if (lists == Lists::AreSets) {
      std::sort(array.begin(), array.end());
    }
    return array;
  }
  return value;
}

bool accepts_all(const json& expected) { return expected.is_string() && expected == "any"; }

std::string differs(
    const std::string& where, const std::string& expected, const std::string& seen) {
  return where + ": expected " + expected + ", seen " + seen;
}

void compare_canonical(
    const std::string& where,
    const json& expected,
    const json& seen,
    std::vector<std::string>& differences);

void compare_objects(
    const std::string& where,
    const json& expected,
    const json& seen,
    std::vector<std::string>& differences) {
  for (const auto& [key, value] : expected.items()) {
    const std::string member = within(where, key);
    if (seen.contains(key)) {
      compare_canonical(member, value, seen[key], differences);
    } else if (!accepts_all(value)) {
      differences.push_back(differs(member, value.dump(), "nothing"));
    }
  }
  for (const auto& [key, value] : seen.items()) {
    if (!expected.contains(key)) {
      differences.push_back(differs(within(where, key), "nothing", value.dump()));
    }
  }
}

bool accepts(const json& expected, const json& seen) {
  if (accepts_all(expected) || expected == seen) {
    return true;
  }
  return expected.is_array() && seen.is_array() &&
         std::equal(expected.begin(), expected.end(), seen.begin(), seen.end(), accepts);
}

void compare_canonical(
    const std::string& where,
    const json& expected,
    const json& seen,
    std::vector<std::string>& differences) {
  if (expected.is_object() && seen.is_object()) {
    compare_objects(where, expected, seen, differences);
  } else if (!accepts(expected, seen)) {
    differences.push_back(differs(where, expected.dump(), seen.dump()));
  }
}

}  // namespace

std::string within(const std::string& where, const std::string& part) { return where + " " + part; }

void compare(
    const std::string& where,
    const json& expected,
    const json& seen,
    std::vector<std::string>& differences,
    Lists lists) {
  compare_canonical(where, canonical(expected, lists), canonical(seen, lists), differences);
}

}  // namespace shunt::conformance
