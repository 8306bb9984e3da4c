// Frontends, slots and addresses <-> the bytes of set elements. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/nft/ruleset.h"
#include "desired/frontend.h"
#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::backend::nft {

KeyBytes encode(const net::IpAddress& ip);
// With its address, or without when it is a NodePort.
KeyBytes encode(const desired::FrontendKey& key);
// `slot` is in host order: that is what numgen leaves in its register.
KeyBytes encode_slot(const desired::FrontendKey& key, std::uint32_t slot);
DataBytes encode_data(const net::SocketAddress& endpoint);
// An element of allowed-sources.
Element source_element(const desired::FrontendKey& key, const net::IpRange& range);

struct SlotKey {
  desired::FrontendKey frontend;
  std::uint32_t slot = 0;
};
struct SourceKey {
  desired::FrontendKey frontend;
  net::IpRange range;
};
// Nothing when the bytes are not of that shape: somebody else wrote them.
std::optional<net::IpAddress> decode_ip(net::Family family, const KeyBytes& key);
std::optional<desired::FrontendKey> decode_frontend(
    net::Family family, KeyShape shape, const KeyBytes& key);
std::optional<SlotKey> decode_slot(net::Family family, KeyShape shape, const KeyBytes& key);
std::optional<SourceKey> decode_source(net::Family family, const Element& element);
std::optional<net::SocketAddress> decode_data(net::Family family, const DataBytes& data);
std::optional<net::IpAddress> decode_address_data(net::Family family, const DataBytes& data);

}  // namespace shunt::backend::nft
