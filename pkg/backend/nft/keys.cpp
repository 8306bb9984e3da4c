#include "backend/nft/keys.h"

#include <algorithm>
#include <array>

namespace shunt::backend::nft {
namespace {

void append_address(auto& bytes, const net::IpAddress& ip) {
  bytes.append(ip.bytes.data(), ip.size());
}
void append_protocol(KeyBytes& bytes, net::Protocol protocol) {
  const auto number = static_cast<std::uint8_t>(protocol);
  bytes.append(&number, 1);
}
void append_port(auto& bytes, net::Port port) {
  const std::uint16_t value = net::number(port);
  const std::array<std::uint8_t, 2> big_endian{
      static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
  bytes.append(big_endian.data(), big_endian.size());
}

// Reads the parts of a key in order; `ok` turns false when they do not fit.
class Reader {
 public:
  Reader(net::Family family, std::span<const std::uint8_t> bytes)
      : family_(family), bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

  net::IpAddress address() {
    net::IpAddress ip{family_, {}};
    const auto part = take(ip.size());
    std::copy(part.begin(), part.end(), ip.bytes.begin());
    return ip;
  }
  net::Protocol protocol() {
    const auto part = padded(1);
    const std::uint8_t number = part.empty() ? 0 : part[0];
    for (const net::Protocol known :
         {net::Protocol::Tcp, net::Protocol::Udp, net::Protocol::Sctp}) {
      if (static_cast<std::uint8_t>(known) == number) {
        return known;
      }
    }
    ok_ = false;
    return net::Protocol::Tcp;
  }
  net::Port port() {
    const auto part = padded(2);
    return part.empty() ? net::Port{}
                        : net::Port{static_cast<std::uint16_t>(part[0] << 8 | part[1])};
  }
  void fail() { ok_ = false; }
  std::uint32_t host_number() {
    const auto part = take(4);
    std::uint32_t value = 0;
    if (!part.empty()) {
      std::memcpy(&value, part.data(), sizeof value);
    }
    return value;
  }

 private:
  // A part of that length, and zeros up to the fourth byte: what has others there is another key.
  std::span<const std::uint8_t> padded(std::size_t length) {
    const auto part = take(4);
    if (std::any_of(
            part.begin() + static_cast<std::ptrdiff_t>(part.empty() ? 0 : length),
            part.end(),
            [](std::uint8_t byte) { return byte != 0; })) {
      ok_ = false;
    }
    return part;
  }
  std::span<const std::uint8_t> take(std::size_t length) {
    if (bytes_.size() < length) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const auto part = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return part;
  }

  net::Family family_;
  std::span<const std::uint8_t> bytes_;
  bool ok_ = true;
};

desired::FrontendKey read_frontend(Reader& reader, net::Family family, bool with_address) {
  desired::FrontendKey key;
  key.ip = with_address ? reader.address() : net::IpAddress{family, {}};
  key.protocol = reader.protocol();
  key.port = reader.port();
  if (with_address && desired::is_node_port(key)) {
    reader.fail();  // the unspecified address, among frontends that have one
  }
  return key;
}

}  // namespace

KeyBytes encode(const net::IpAddress& ip) {
  KeyBytes out;
  append_address(out, ip);
  return out;
}

KeyBytes encode(const desired::FrontendKey& key) {
  KeyBytes out;
  if (!desired::is_node_port(key)) {
    append_address(out, key.ip);
  }
  append_protocol(out, key.protocol);
  append_port(out, key.port);
  return out;
}

KeyBytes encode_slot(const desired::FrontendKey& key, std::uint32_t slot) {
  KeyBytes out = encode(key);
  std::array<std::uint8_t, 4> host_order{};
  std::memcpy(host_order.data(), &slot, sizeof slot);
  out.append(host_order.data(), host_order.size());
  return out;
}

DataBytes encode_data(const net::SocketAddress& endpoint) {
  DataBytes out;
  append_address(out, endpoint.ip);
  append_port(out, endpoint.port);
  return out;
}

Element source_element(const desired::FrontendKey& key, const net::IpRange& range) {
  Element element;
  element.key = encode(key);
  append_address(element.key, range.first);
  append_address(element.data, range.last);
  return element;
}

std::optional<net::IpAddress> decode_ip(net::Family family, const KeyBytes& key) {
  Reader reader(family, key.span());
  const net::IpAddress ip = reader.address();
  return reader.done() ? std::optional(ip) : std::nullopt;
}

std::optional<desired::FrontendKey> decode_frontend(
    net::Family family, KeyShape shape, const KeyBytes& key) {
  Reader reader(family, key.span());
  const auto frontend = read_frontend(reader, family, shape == KeyShape::Frontend);
  return reader.done() ? std::optional(frontend) : std::nullopt;
}

std::optional<SlotKey> decode_slot(net::Family family, KeyShape shape, const KeyBytes& key) {
  Reader reader(family, key.span());
  SlotKey out;
  out.frontend = read_frontend(reader, family, shape == KeyShape::FrontendSlot);
  out.slot = reader.host_number();
  return reader.done() ? std::optional(out) : std::nullopt;
}

std::optional<SourceKey> decode_source(net::Family family, const Element& element) {
  Reader reader(family, element.key.span());
  Reader end(family, element.data.span());
  SourceKey out;
  out.frontend = read_frontend(reader, family, true);
  out.range = {reader.address(), end.address()};
  return reader.done() && end.done() ? std::optional(out) : std::nullopt;
}

std::optional<net::IpAddress> decode_address_data(net::Family family, const DataBytes& data) {
  Reader reader(family, data.span());
  const net::IpAddress ip = reader.address();
  return reader.done() ? std::optional(ip) : std::nullopt;
}

std::optional<net::SocketAddress> decode_data(net::Family family, const DataBytes& data) {
  Reader reader(family, data.span());
  net::SocketAddress endpoint;
  endpoint.ip = reader.address();
  endpoint.port = reader.port();
  return reader.done() ? std::optional(endpoint) : std::nullopt;
}

}  // namespace shunt::backend::nft
