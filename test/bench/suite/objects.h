// The objects that a run changes, beside the load that is only there. They live in namespace
// "bench", their pods in 10.64.0.0/24, their ClusterIPs at the end of the range.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/socket_address.h"

namespace shunt::bench {

inline constexpr char kNamespace[] = "bench";
inline constexpr std::uint16_t kTargetPodPort = 8081;

struct ServiceTarget {
  std::string name;
  std::string cluster_ip;
  net::Protocol protocol = net::Protocol::Tcp;

  net::SocketAddress address() const;  // where clients connect
  nlohmann::json service() const;
  // Endpoints 10.64.0.`first` to 10.64.0.`first` + `count` - 1; all of them ready.
  nlohmann::json slice(unsigned first, unsigned count) const;
  // Only the ready one of two: what a flip changes.
  nlohmann::json slice_of_two(unsigned ready) const;

  std::string service_path() const;
  std::string slice_path() const;
};

net::SocketAddress target_pod(unsigned number);  // 10.64.0.`number`, from 1

// Of a slice: what a merge patch says to make it that one.
std::string endpoints_patch(const nlohmann::json& slice);

nlohmann::json node_object(const std::string& name, const std::string& ip);
nlohmann::json service_cidr_object(const std::string& cidr);

// Service `number` of a load, and its slice, for servers that have no generator of their own.
nlohmann::json load_service(std::size_t number);
nlohmann::json load_slice(std::size_t number, std::size_t endpoints);

net::SocketAddress load_address(std::size_t number);  // the ClusterIP and port
net::SocketAddress load_pod(std::size_t number);      // of all pods of the load

}  // namespace shunt::bench
