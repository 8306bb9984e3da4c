#include "bench/floor/ipvs_floor.h"

#include <arpa/inet.h>
#include <libnl3/netlink/socket.h>
#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <stdexcept>
#include <string>

namespace shunt::bench {
namespace {

constexpr std::size_t kPacketBytes = std::size_t{64} << 10;

int check(const char* what, int code) {
  if (code < 0) {
    throw std::runtime_error(std::string(what) + ": " + ::nl_geterror(code));
  }
  return code;
}

int family_number(const net::SocketAddress& address) {
  return address.ip.family == net::Family::IPv4 ? AF_INET : AF_INET6;
}

}  // namespace

void IpvsFloor::FreeMessage::operator()(nl_msg* message) const noexcept { ::nlmsg_free(message); }

IpvsFloor::IpvsFloor() : socket_(::nl_socket_alloc()), family_(0) {
  check("generic netlink", ::genl_connect(socket_));
  ::nl_socket_disable_seq_check(socket_);  // of many requests in flight it knows the first only
  check("buffers", ::nl_socket_set_buffer_size(socket_, 1 << 20, 1 << 20));
  family_ = check("IPVS", ::genl_ctrl_resolve(socket_, IPVS_GENL_NAME));
}

IpvsFloor::~IpvsFloor() { ::nl_socket_free(socket_); }

IpvsFloor::Message IpvsFloor::begin(int command, int flags) const {
  Message out(::nlmsg_alloc_size(512));
  ::genlmsg_put(
      out.get(),
      NL_AUTO_PORT,
      NL_AUTO_SEQ,
      family_,
      0,
      flags,
      static_cast<std::uint8_t>(command),
      IPVS_GENL_VERSION);
  return out;
}

void IpvsFloor::put_server(nl_msg* message, const net::SocketAddress& server, bool whole) const {
  nlattr* nest = ::nla_nest_start(message, IPVS_CMD_ATTR_SERVICE);
  ::nla_put_u16(message, IPVS_SVC_ATTR_AF, static_cast<std::uint16_t>(family_number(server)));
  ::nla_put_u16(message, IPVS_SVC_ATTR_PROTOCOL, IPPROTO_TCP);
  ::nla_put(
      message, IPVS_SVC_ATTR_ADDR, static_cast<int>(server.ip.size()), server.ip.bytes.data());
  ::nla_put_u16(message, IPVS_SVC_ATTR_PORT, htons(net::number(server.port)));
  if (whole) {
    const ip_vs_flags flags{0, ~std::uint32_t{0}};
    ::nla_put_string(message, IPVS_SVC_ATTR_SCHED_NAME, "rr");
    ::nla_put(message, IPVS_SVC_ATTR_FLAGS, sizeof flags, &flags);
    ::nla_put_u32(message, IPVS_SVC_ATTR_TIMEOUT, 0);
    ::nla_put_u32(
        message, IPVS_SVC_ATTR_NETMASK, family_number(server) == AF_INET ? 0xffffffff : 128);
  }
  ::nla_nest_end(message, nest);
}

IpvsFloor::Message IpvsFloor::server_command(const VirtualServer& server) const {
  Message out = begin(IPVS_CMD_NEW_SERVICE, 0);
  put_server(out.get(), server.address, true);
  return out;
}

IpvsFloor::Message IpvsFloor::destination_command(
    const net::SocketAddress& server, const net::SocketAddress& destination) const {
  Message out = begin(IPVS_CMD_NEW_DEST, 0);
  nl_msg* message = out.get();
  put_server(message, server, false);
  nlattr* nest = ::nla_nest_start(message, IPVS_CMD_ATTR_DEST);
  ::nla_put(
      message,
      IPVS_DEST_ATTR_ADDR,
      static_cast<int>(destination.ip.size()),
      destination.ip.bytes.data());
  ::nla_put_u16(message, IPVS_DEST_ATTR_PORT, htons(net::number(destination.port)));
  ::nla_put_u16(
      message, IPVS_DEST_ATTR_ADDR_FAMILY, static_cast<std::uint16_t>(family_number(destination)));
  ::nla_put_u32(message, IPVS_DEST_ATTR_FWD_METHOD, 0);
  ::nla_put_u32(message, IPVS_DEST_ATTR_WEIGHT, 1);
  ::nla_put_u32(message, IPVS_DEST_ATTR_U_THRESH, 0);
  ::nla_put_u32(message, IPVS_DEST_ATTR_L_THRESH, 0);
  ::nla_nest_end(message, nest);
  return out;
}

template <typename Each>
void IpvsFloor::commands(const std::vector<VirtualServer>& servers, const Each& each) const {
  for (const VirtualServer& server : servers) {
    each(server_command(server));
    for (const net::SocketAddress& destination : server.destinations) {
      each(destination_command(server.address, destination));
    }
  }
}

void IpvsFloor::write_in_packets(const std::vector<VirtualServer>& servers) {
  std::size_t left = 0;
  for (const VirtualServer& server : servers) {
    left += 1 + server.destinations.size();
  }
  std::vector<char> packet;
  packet.reserve(kPacketBytes);
  commands(servers, [&](const Message& message) {
    ::nl_complete_msg(socket_, message.get());
    nlmsghdr* head = ::nlmsg_hdr(message.get());
    if (--left > 0) {
      head->nlmsg_flags &= static_cast<std::uint16_t>(~NLM_F_ACK);
    }
    const auto* bytes = reinterpret_cast<const char*>(head);
    packet.insert(packet.end(), bytes, bytes + head->nlmsg_len);
    if (left == 0 || packet.size() > kPacketBytes - 512) {
      check("send", ::nl_sendto(socket_, packet.data(), packet.size()));
      packet.clear();
    }
  });
  check("commands", ::nl_wait_for_ack(socket_));
}

void IpvsFloor::write_one_by_one(const std::vector<VirtualServer>& servers) {
  commands(servers, [&](Message message) { wait_for_answer(std::move(message)); });
}

void IpvsFloor::wait_for_answer(Message message) {
  check("send", ::nl_send_auto(socket_, message.get()));
  check("command", ::nl_wait_for_ack(socket_));
}

std::size_t IpvsFloor::ask(Message question) {
  std::size_t messages = 0;
  ::nl_socket_modify_cb(
      socket_,
      NL_CB_VALID,
      NL_CB_CUSTOM,
      [](nl_msg*, void* counter) -> int {
        ++*static_cast<std::size_t*>(counter);
        return NL_OK;
      },
      &messages);
  check("send", ::nl_send_auto(socket_, question.get()));
  check("listing", ::nl_recvmsgs_default(socket_));
  return messages;
}

std::size_t IpvsFloor::read(const std::vector<VirtualServer>& servers) {
  ::nl_socket_disable_auto_ack(socket_);
  std::size_t out = ask(begin(IPVS_CMD_GET_SERVICE, NLM_F_DUMP));
  for (const VirtualServer& server : servers) {
    Message question = begin(IPVS_CMD_GET_DEST, NLM_F_DUMP);
    put_server(question.get(), server.address, false);
    out += ask(std::move(question));
  }
  ::nl_socket_modify_cb(socket_, NL_CB_VALID, NL_CB_DEFAULT, nullptr, nullptr);
  ::nl_socket_enable_auto_ack(socket_);
  return out;
}

void IpvsFloor::flush() { wait_for_answer(begin(IPVS_CMD_FLUSH, 0)); }

}  // namespace shunt::bench
