#include "packet/first_packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "netns/sockets.h"
#include "packet/sightings.h"

namespace shunt::conformance::packet {
namespace {

[[noreturn]] void raise_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

template <typename Value>
void set_option(int fd, int level, int option, Value value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) {
    raise_errno("setsockopt " + std::to_string(option));
  }
}

void want_all_errors(int fd, net::Family family) {
  if (family == net::Family::IPv4) {
    set_option(fd, SOL_IP, IP_RECVERR, 1);
  } else {
    set_option(fd, SOL_IPV6, IPV6_RECVERR, 1);
  }
}

// A socket under repair may choose its first sequence number; it is an ordinary one afterwards.
void choose_first_sequence_number(int fd, std::uint32_t id) {
  set_option(fd, IPPROTO_TCP, TCP_REPAIR, 1);
  set_option(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, 2);  // the send queue
  set_option(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, id);
  set_option(fd, IPPROTO_TCP, TCP_REPAIR, 0);
}

void append(std::vector<std::uint8_t>& bytes, std::uint32_t value, int width) {
  for (int shift = (width - 1) * 8; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

// CRC-32C bit by bit: a packet is 32 bytes long.
std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    }
  }
  return ~crc;
}

std::vector<std::uint8_t> sctp_init(net::Port from, net::Port to, std::uint32_t tag) {
  std::vector<std::uint8_t> bytes;
  append(bytes, net::number(from), 2);
  append(bytes, net::number(to), 2);
  append(bytes, 0, 4);   // verification tag: none yet
  append(bytes, 0, 4);   // checksum, below
  append(bytes, 1, 1);   // INIT
  append(bytes, 0, 1);   // flags
  append(bytes, 20, 2);  // length of the chunk
  append(bytes, tag, 4);
  append(bytes, 65536, 4);  // window
  append(bytes, 1, 2);      // outbound streams
  append(bytes, 1, 2);      // inbound streams
  append(bytes, tag, 4);    // first TSN
  const std::uint32_t checksum = crc32c(bytes);
  for (std::size_t i = 0; i < 4; ++i) {  // little endian on the wire
    bytes[8 + i] = static_cast<std::uint8_t>(checksum >> (8 * i));
  }
  return bytes;
}

std::vector<std::uint8_t> datagram(std::uint32_t id) {
  std::vector<std::uint8_t> bytes;
  append(bytes, kUdpMark, 4);
  append(bytes, id, 4);
  return bytes;
}

// What a local hook does to a packet shows as EPERM here; whether it also refused shows later.
void send_bytes(int fd, const std::vector<std::uint8_t>& bytes) {
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 && errno != EPERM &&
      errno != ECONNREFUSED) {
    raise_errno("send");
  }
}

UniqueFd raw_sctp_socket(net::Family family) {
  UniqueFd fd(
      ::socket(lab::domain_of(family), SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP));
  if (!fd) {
    raise_errno("raw socket");
  }
  return fd;
}

std::uint16_t internet_checksum(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

std::vector<std::uint8_t> tcp_header(
    const net::SocketAddress& from,
    const net::SocketAddress& to,
    std::uint32_t sequence,
    std::uint32_t acknowledgement) {
  std::vector<std::uint8_t> header;
  append(header, net::number(from.port), 2);
  append(header, net::number(to.port), 2);
  append(header, sequence, 4);
  append(header, acknowledgement, 4);
  append(header, 0x50, 1);
  append(header, kTcpAck, 1);
  append(header, 1024, 2);
  append(header, 0, 4);  // checksum, urgent pointer
  std::vector<std::uint8_t> summed(from.ip.bytes.begin(), from.ip.bytes.begin() + 4);
  summed.insert(summed.end(), to.ip.bytes.begin(), to.ip.bytes.begin() + 4);
  append(summed, IPPROTO_TCP, 2);
  append(summed, static_cast<std::uint32_t>(header.size()), 2);
  summed.insert(summed.end(), header.begin(), header.end());
  const std::uint16_t checksum = internet_checksum(summed);
  header[16] = static_cast<std::uint8_t>(checksum >> 8);
  header[17] = static_cast<std::uint8_t>(checksum & 0xff);
  return header;
}

}  // namespace

Attempt send_first_packet(
    net::Protocol protocol,
    const net::SocketAddress& from,
    const net::SocketAddress& to,
    std::uint32_t id) {
  const bool sctp = protocol == net::Protocol::Sctp;
  Attempt attempt;
  attempt.fd = sctp ? raw_sctp_socket(from.ip.family) : lab::open_socket(protocol, from.ip.family);
  attempt.from = from;
  attempt.id = id;
  const int fd = attempt.fd.get();
  want_all_errors(fd, from.ip.family);
  // A raw socket has no port: it says so in its header.
  lab::bind_to(fd, sctp ? net::SocketAddress{from.ip, net::Port{0}} : from);
  if (protocol == net::Protocol::Tcp) {
    choose_first_sequence_number(fd, id);
  }
  const lab::RawAddress raw = lab::to_raw(sctp ? net::SocketAddress{to.ip, net::Port{0}} : to);
  if (::connect(fd, raw.get(), raw.length) != 0 && errno != EINPROGRESS) {
    attempt.error = errno;
    return attempt;
  }
  if (protocol == net::Protocol::Udp) {
    send_bytes(fd, datagram(id));
  } else if (sctp) {
    send_bytes(fd, sctp_init(from.port, to.port, id));
  }
  return attempt;
}

void send_again(Attempt& attempt, std::uint32_t id) {
  look_for_error(attempt);  // what is left of the last datagram
  attempt.error = 0;
  attempt.id = id;
  send_bytes(attempt.fd.get(), datagram(id));
}

void look_for_error(Attempt& attempt) {
  if (attempt.error == 0) {
    socklen_t size = sizeof attempt.error;
    ::getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &attempt.error, &size);
  }
  // The details of errors, which nobody asks for: whoever polls would find them again and again.
  std::array<char, 512> details{};
  while (::recv(attempt.fd.get(), details.data(), details.size(), MSG_ERRQUEUE | MSG_DONTWAIT) >=
         0) {
  }
}

void send_stray_segment(
    const net::SocketAddress& from,
    const net::SocketAddress& to,
    std::uint32_t sequence,
    std::uint32_t acknowledgement) {
  const UniqueFd fd(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) {
    raise_errno("raw socket");
  }
  lab::bind_to(fd.get(), {from.ip, net::Port{0}});
  const lab::RawAddress raw = lab::to_raw({to.ip, net::Port{0}});
  const std::vector<std::uint8_t> segment = tcp_header(from, to, sequence, acknowledgement);
  if (::sendto(fd.get(), segment.data(), segment.size(), 0, raw.get(), raw.length) < 0) {
    raise_errno("cannot send a stray segment");
  }
}

}  // namespace shunt::conformance::packet
