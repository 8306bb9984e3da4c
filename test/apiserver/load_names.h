// Identities and addresses of generated objects: functions of a seed and a number, so that the same
// request makes the same cluster.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shunt::test_api {

// A number that looks random, of two numbers.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t number);
std::uint64_t mixed(std::uint64_t seed, std::string_view text);

std::string uid_of(std::uint64_t seed);                       // a UUID
std::string suffix_of(std::uint64_t seed, std::size_t size);  // as generateName's, but not random

std::string cluster_ip(std::string_view family, std::size_t number);  // 10.96.0.0/12
std::string pod_ip(std::string_view family, std::size_t number);      // 10.128.0.0/9

}  // namespace shunt::test_api
