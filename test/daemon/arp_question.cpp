#include "daemon/arp_question.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>

#include "base/unique_fd.h"

namespace shunt::test {
namespace {

using Clock = std::chrono::steady_clock;

ether_arp question(const net::IpAddress& ip) {
  ether_arp out{};
  out.ea_hdr.ar_hrd = htons(ARPHRD_ETHER);
  out.ea_hdr.ar_pro = htons(ETHERTYPE_IP);
  out.ea_hdr.ar_hln = ETH_ALEN;
  out.ea_hdr.ar_pln = 4;
  out.ea_hdr.ar_op = htons(ARPOP_REQUEST);
  out.arp_sha[0] = 2;
  out.arp_sha[5] = 9;
  const std::array<std::uint8_t, 4> sender{198, 51, 100, 99};
  std::memcpy(out.arp_spa, sender.data(), sender.size());
  std::memcpy(out.arp_tpa, ip.bytes.data(), 4);
  return out;
}

bool is_answer(const ether_arp& seen, const net::IpAddress& ip) {
  return seen.ea_hdr.ar_op == htons(ARPOP_REPLY) &&
         std::memcmp(seen.arp_spa, ip.bytes.data(), 4) == 0;
}

bool ask(const char* device, const net::IpAddress& ip) {
  const UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETHERTYPE_ARP)));
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETHERTYPE_ARP);
  to.sll_ifindex = static_cast<int>(::if_nametoindex(device));
  to.sll_halen = ETH_ALEN;
  std::memset(to.sll_addr, 0xff, ETH_ALEN);
  const ether_arp asked = question(ip);
  if (!fd ||
      ::sendto(
          fd.get(), &asked, sizeof asked, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) !=
          static_cast<ssize_t>(sizeof asked)) {
    lab::raise_errno("cannot ask by ARP");
  }
  const auto deadline = Clock::now() + std::chrono::milliseconds(500);
  while (Clock::now() < deadline) {
    pollfd readable{.fd = fd.get(), .events = POLLIN, .revents = 0};
    ether_arp seen{};
    if (::poll(&readable, 1, 50) > 0 &&
        ::recv(fd.get(), &seen, sizeof seen, 0) == static_cast<ssize_t>(sizeof seen) &&
        is_answer(seen, ip)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool arp_answers(const lab::Netns& where, const char* device, const net::IpAddress& ip) {
  return where.run([&] { return ask(device, ip); });
}

}  // namespace shunt::test
