#include "virtual_servers/sync_message.h"

namespace shunt::conformance::virtual_servers {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint32_t kInactive = 0x100;  // IP_VS_CONN_F_INACTIVE
constexpr std::uint8_t kIpv6 = 1;           // STYPE_F_INET6
constexpr std::size_t kHeader = 8;

// States as the kernel numbers them: IP_VS_TCP_S_ESTABLISHED and so on.
std::uint16_t state_of(const Connection& connection) {
  switch (connection.protocol) {
    case net::Protocol::Tcp:
      return connection.active ? 1 : 4;  // ESTABLISHED, FIN_WAIT
    case net::Protocol::Sctp:
      return connection.active ? 8 : 9;  // ESTABLISHED, SHUTDOWN_SENT
    case net::Protocol::Udp:
      break;
  }
  return 0;  // NORMAL
}

void put8(std::string& out, std::uint8_t value) { out.push_back(static_cast<char>(value)); }

void put16(std::string& out, std::uint16_t value) {
  put8(out, static_cast<std::uint8_t>(value >> 8));
  put8(out, static_cast<std::uint8_t>(value & 0xff));
}

void put32(std::string& out, std::uint32_t value) {
  put16(out, static_cast<std::uint16_t>(value >> 16));
  put16(out, static_cast<std::uint16_t>(value & 0xffff));
}

void put_ip(std::string& out, const net::IpAddress& ip) {
  for (std::size_t i = 0; i < ip.size(); ++i) {
    put8(out, ip.bytes[i]);
  }
}

std::string entry(const Connection& connection) {
  const bool ipv6 = connection.server.ip.family == net::Family::IPv6;
  const std::uint16_t size = ipv6 ? 72 : 36;
  std::string out;
  put8(out, ipv6 ? kIpv6 : 0);
  put8(out, static_cast<std::uint8_t>(connection.protocol));
  put16(out, size);  // and version 0 in the upper four bits
  put32(out, connection.active ? 0 : kInactive);
  put16(out, state_of(connection));
  put16(out, net::number(connection.client.port));
  put16(out, net::number(connection.server.port));
  put16(out, net::number(connection.real.port));
  put32(out, 0);  // no mark
  put32(out, static_cast<std::uint32_t>(connection.timeout.count()));
  put_ip(out, connection.client.ip);
  put_ip(out, connection.server.ip);
  put_ip(out, connection.real.ip);
  return out;
}

}  // namespace

std::string sync_message(std::uint8_t sync_id, const std::vector<Connection>& connections) {
  std::string entries;
  for (const Connection& connection : connections) {
    entries += entry(connection);
  }
  std::string out;
  put8(out, 0);  // where version 0 has its number of connections
  put8(out, sync_id);
  put16(out, static_cast<std::uint16_t>(kHeader + entries.size()));
  put8(out, static_cast<std::uint8_t>(connections.size()));
  put8(out, kVersion);
  put16(out, 0);
  return out + entries;
}

}  // namespace shunt::conformance::virtual_servers
