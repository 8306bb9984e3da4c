#include "bench/suite/nft_socket.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <stdexcept>

#include "netlink/attributes.h"

namespace shunt::bench {

UniqueFd open_nft_socket(bool subscribe) {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  self.nl_groups = subscribe ? 1U << (NFNLGRP_NFTABLES - 1) : 0;
  const int room = 64 << 20;  // a Service of 10 000 endpoints is as many notifications
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0) {
    throw std::runtime_error("cannot open a netfilter netlink socket");
  }
  return fd;
}

void for_each_message(
    std::span<const std::uint8_t> datagram, const std::function<void(const NftMessage&)>& each) {
  constexpr std::size_t kHeads = NLMSG_HDRLEN + sizeof(nfgenmsg);
  while (datagram.size() >= kHeads) {
    nlmsghdr head{};
    std::memcpy(&head, datagram.data(), sizeof head);
    if (head.nlmsg_len < kHeads || head.nlmsg_len > datagram.size()) {
      return;
    }
    if (head.nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES) {
      each(
          {static_cast<std::uint16_t>(head.nlmsg_type & 0xff),
           datagram.subspan(kHeads, head.nlmsg_len - kHeads)});
    }
    const std::size_t step = NLMSG_ALIGN(head.nlmsg_len);
    datagram = step < datagram.size() ? datagram.subspan(step) : std::span<const std::uint8_t>();
  }
}

std::string_view text_attribute(std::span<const std::uint8_t> attributes, std::uint16_t type) {
  const auto found = netlink::find_attribute(attributes, type);
  return found ? netlink::attribute_text(*found) : std::string_view();
}

std::uint32_t number_attribute(std::span<const std::uint8_t> attributes, std::uint16_t type) {
  const auto found = netlink::find_attribute(attributes, type);
  return found ? netlink::attribute_be32(*found) : 0;
}

}  // namespace shunt::bench
