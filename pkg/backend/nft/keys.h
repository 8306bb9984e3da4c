// Frontends, slots and addresses <-> the bytes of set elements. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/nft/ruleset.h"
#include "desired/frontend.h"
#include "net/socket_address.h"

namespace shunt::backend::nft {

// An endpoint that may reach itself: address . address . l4proto . port.
struct HairpinKey {
  net::SocketAddress endpoint;
  net::Protocol protocol = net::Protocol::Tcp;
  auto operator<=>(const HairpinKey&) const = default;
};

KeyBytes encode(const net::IpAddress& ip);
KeyBytes encode(const desired::FrontendKey& key);
KeyBytes encode(const HairpinKey& key);
// `slot` is in host order: that is what numgen leaves in its register.
KeyBytes encode_slot(const desired::FrontendKey& key, std::uint32_t slot);
DataBytes encode_data(const net::SocketAddress& endpoint);

struct SlotKey {
  desired::FrontendKey frontend;
  std::uint32_t slot = 0;
};
// Nothing when the bytes are not of that shape: somebody else wrote them.
std::optional<net::IpAddress> decode_ip(net::Family family, const KeyBytes& key);
std::optional<desired::FrontendKey> decode_frontend(net::Family family, const KeyBytes& key);
std::optional<HairpinKey> decode_hairpin(net::Family family, const KeyBytes& key);
std::optional<SlotKey> decode_slot(net::Family family, const KeyBytes& key);
std::optional<net::SocketAddress> decode_data(net::Family family, const DataBytes& data);

}  // namespace shunt::backend::nft

template <>
struct std::hash<shunt::backend::nft::HairpinKey> {
  std::size_t operator()(const shunt::backend::nft::HairpinKey& key) const {
    return std::hash<shunt::net::SocketAddress>{}(key.endpoint) * 31 +
           static_cast<std::size_t>(key.protocol);
  }
};
