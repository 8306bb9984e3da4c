#include "netlink/listener.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/filter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "netlink/socket.h"

namespace shunt::netlink {
namespace {

constexpr std::size_t kReceiveBuffer = std::size_t{64} * 1024;
constexpr std::size_t kMostPorts = 64;

// A message comes with all others of its transaction, so that the first speaks for all. The filter
// reads words in network order, whatever the machine's.
std::vector<sock_filter> others_only(std::span<const std::uint32_t> own_ports) {
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(nlmsghdr, nlmsg_pid)));
  for (std::size_t i = 0; i < own_ports.size(); ++i) {
    const auto to_the_end = static_cast<std::uint8_t>(own_ports.size() - i);
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(own_ports[i]), to_the_end, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0xffffffff));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  return program;
}

}  // namespace

Listener::Listener(UniqueFd socket) : socket_(std::move(socket)), buffer_(kReceiveBuffer) {}

Result<std::unique_ptr<Listener>> Listener::open(
    unsigned group, std::span<const std::uint32_t> own_ports) {
  if (own_ports.size() > kMostPorts) {
    return fail(Errc::Invalid, "too many sockets of our own");
  }
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER));
  std::vector<sock_filter> program = others_only(own_ports);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  // The filter comes before the group: not a single message of ours is to be heard.
  if (!socket ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(socket.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0) {
    return sys_fail("netfilter notifications", errno);
  }
  (void)::setsockopt(  // without it less fits, and losses are said
      socket.get(),
      SOL_SOCKET,
      SO_RCVBUFFORCE,
      &kListenBuffer,
      sizeof kListenBuffer);
  return std::unique_ptr<Listener>(new Listener(std::move(socket)));
}

Result<> Listener::receive(const std::function<void(const Notification&)>& each) {
  bool lost = false;
  for (;;) {
    const ssize_t got =
        ::recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      if (errno == ENOBUFS) {
        lost = true;
        continue;
      }
      break;  // EAGAIN: all read
    }
    if (static_cast<std::size_t>(got) > buffer_.size()) {
      lost = true;  // the kernel makes none so large
      continue;
    }
    int left = static_cast<int>(got);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer_.data());
         mnl_nlmsg_ok(message, left);
         message = mnl_nlmsg_next(message, &left)) {
      const std::size_t length = mnl_nlmsg_get_payload_len(message);
      if (message->nlmsg_type < NLMSG_MIN_TYPE || length < sizeof(nfgenmsg)) {
        continue;
      }
      const auto* payload = static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(message));
      each(
          {static_cast<std::uint16_t>(NFNL_MSG_TYPE(message->nlmsg_type)),
           payload[offsetof(nfgenmsg, nfgen_family)],
           {payload + sizeof(nfgenmsg), length - sizeof(nfgenmsg)}});
    }
  }
  if (lost) {
    return fail(Errc::Stale, "notifications of netfilter were lost", ENOBUFS);
  }
  return {};
}

}  // namespace shunt::netlink
