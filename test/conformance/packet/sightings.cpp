#include "packet/sightings.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "netns/sockets.h"

namespace shunt::conformance::packet {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::uint16_t number16(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

std::uint32_t number32(Bytes bytes, std::size_t at) {
  return std::uint32_t{number16(bytes, at)} << 16 | number16(bytes, at + 2);
}

void set_option(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) {
    throw std::system_error(errno, std::generic_category(), "setsockopt");
  }
}

UniqueFd open_ear(net::Protocol protocol, net::Family family) {
  UniqueFd fd(::socket(
      lab::domain_of(family), SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, static_cast<int>(protocol)));
  if (!fd) {
    throw std::system_error(errno, std::generic_category(), "raw socket");
  }
  set_option(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20);
  if (family == net::Family::IPv6) {
    set_option(fd.get(), SOL_IPV6, IPV6_RECVPKTINFO, 1);
  }
  return fd;
}

struct Packet {
  net::IpAddress from;
  net::IpAddress to;
  Bytes transport;
};

// An IPv4 raw socket hands out the IP header as well; an IPv6 one tells the destination beside.
std::optional<Packet> receive(int fd, net::Family family, std::array<std::uint8_t, 2048>& buffer) {
  lab::RawAddress peer;
  iovec data{.iov_base = buffer.data(), .iov_len = buffer.size()};
  alignas(cmsghdr) std::array<char, 128> control{};
  msghdr message{};
  message.msg_name = &peer.storage;
  message.msg_namelen = sizeof peer.storage;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(fd, &message, 0);
  if (n < 0) {
    return std::nullopt;
  }
  const Bytes bytes(buffer.data(), static_cast<std::size_t>(n));
  Packet packet;
  if (family == net::Family::IPv4) {
    const std::size_t header = bytes.size() < 20 ? 0 : (bytes[0] & 0x0f) * std::size_t{4};
    if (header < 20 || header > bytes.size()) {
      return packet;
    }
    packet.from = lab::ip_from_bytes(family, bytes.data() + 12);
    packet.to = lab::ip_from_bytes(family, bytes.data() + 16);
    packet.transport = bytes.subspan(header);
    return packet;
  }
  packet.from = lab::from_raw(peer).ip;
  packet.transport = bytes;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(part), sizeof info);
      packet.to = lab::ip_from_bytes(family, &info.ipi6_addr);
    }
  }
  return packet;
}

}  // namespace

std::optional<Sighting> parse_transport(net::Protocol protocol, Bytes bytes) {
  const std::size_t least = protocol == net::Protocol::Udp ? 16 : 20;
  if (bytes.size() < least) {
    return std::nullopt;
  }
  Sighting sighting;
  sighting.protocol = protocol;
  sighting.from.port = net::Port{number16(bytes, 0)};
  sighting.to.port = net::Port{number16(bytes, 2)};
  switch (protocol) {
    case net::Protocol::Tcp:
      sighting.id = number32(bytes, 4);
      sighting.tcp_flags = bytes[13];
      sighting.first = (bytes[13] & (kTcpSyn | kTcpAck)) == kTcpSyn;
      return sighting;
    case net::Protocol::Udp:
      sighting.id = number32(bytes, 12);
      sighting.first = number32(bytes, 8) == kUdpMark;
      break;
    case net::Protocol::Sctp:
      sighting.id = number32(bytes, 16);
      sighting.first = bytes[12] == 1;  // an INIT chunk
      break;
  }
  return sighting.first ? std::optional(sighting) : std::nullopt;
}

Sightings::Sightings(const lab::Lab& lab, const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    lab.place(place).run([&] {
      for (const net::Protocol protocol :
           {net::Protocol::Tcp, net::Protocol::Udp, net::Protocol::Sctp}) {
        for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
          ears_.push_back({place, protocol, family, open_ear(protocol, family)});
        }
      }
    });
  }
}

std::vector<Sighting> Sightings::drain() { return wait(std::chrono::milliseconds(0)); }

std::vector<Sighting> Sightings::wait(
    std::chrono::milliseconds time, const std::vector<int>& others) {
  std::vector<pollfd> polled = descriptors();
  for (const int fd : others) {
    polled.push_back({.fd = fd, .events = 0, .revents = 0});  // errors are always told
  }
  const auto count = std::max<std::chrono::milliseconds::rep>(time.count(), 0);
  ::poll(polled.data(), polled.size(), static_cast<int>(count));
  return drain(polled);
}

std::vector<Sighting> Sightings::drain(const std::vector<pollfd>& polled) {
  std::vector<Sighting> sightings;
  std::array<std::uint8_t, 2048> buffer{};
  for (std::size_t i = 0; i < ears_.size(); ++i) {
    const Ear& ear = ears_[i];
    if (polled[i].revents == 0) {
      continue;
    }
    while (const auto packet = receive(ear.fd.get(), ear.family, buffer)) {
      auto sighting = parse_transport(ear.protocol, packet->transport);
      if (sighting) {
        sighting->place = ear.place;
        sighting->from.ip = packet->from;
        sighting->to.ip = packet->to;
        sightings.push_back(std::move(*sighting));
      }
    }
  }
  return sightings;
}

std::vector<pollfd> Sightings::descriptors() const {
  std::vector<pollfd> descriptors;
  for (const Ear& ear : ears_) {
    descriptors.push_back({.fd = ear.fd.get(), .events = POLLIN, .revents = 0});
  }
  return descriptors;
}

}  // namespace shunt::conformance::packet
