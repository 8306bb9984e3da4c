#include "netlink/socket.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "netlink/batch.h"
#include "netlink/end_of_answer.h"
#include "netlink/messages.h"

namespace shunt::netlink {
namespace {

constexpr std::size_t kReceiveBuffer = std::size_t{256} * 1024;
// Room for the errors of a whole batch: one a message, about a hundred bytes each.
constexpr int kSocketReceiveBuffer = 16 << 20;

}  // namespace

Errc errc_of(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case EEXIST:
    case EBUSY:
    case ENOBUFS:
      return Errc::Stale;
    case EAGAIN:
    case EINTR:
    case ENOMEM:
    case ERESTART:
      return Errc::Again;
    case EPERM:
    case EACCES:
      return Errc::Denied;
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
      return Errc::Unsupported;
    default:
      return Errc::Invalid;
  }
}

tl::unexpected<Error> sys_fail(const char* what, int sys_errno) {
  return fail(errc_of(sys_errno), std::string(what) + ": " + std::strerror(sys_errno), sys_errno);
}

void Socket::Close::operator()(mnl_socket* socket) const noexcept {
  (void)mnl_socket_close(socket);  // nobody left to tell
}

Socket::~Socket() = default;

std::uint32_t Socket::port() const { return mnl_socket_get_portid(socket_.get()); }

Result<std::unique_ptr<Socket>> Socket::open() {
  std::unique_ptr<Socket> made(new Socket);
  made->socket_.reset(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC));
  if (!made->socket_) {
    return sys_fail("netfilter netlink socket", errno);
  }
  if (mnl_socket_bind(made->socket_.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
    return sys_fail("bind of the netfilter netlink socket", errno);
  }
  const int fd = mnl_socket_get_fd(made->socket_.get());
  (void)::setsockopt(  // without it a refusal of a very large batch may be cut short: we would
                       // re-read
      fd,
      SOL_SOCKET,
      SO_RCVBUFFORCE,
      &kSocketReceiveBuffer,
      sizeof kSocketReceiveBuffer);
  const int on = 1;
  // Errors need not carry a copy of the message they refuse.
  (void)mnl_socket_setsockopt(
      made->socket_.get(), NETLINK_CAP_ACK, const_cast<int*>(&on), sizeof on);
  made->receive_.resize(kReceiveBuffer);
  return made;
}

Result<> Socket::send(std::span<const std::uint8_t> bytes) {
  const int fd = mnl_socket_get_fd(socket_.get());
  if (bytes.size() + 4096 > send_buffer_) {
    // The kernel takes a batch whole or not at all, so the buffer must hold it (it doubles the
    // value itself).
    const int wanted =
        static_cast<int>(bytes.size() + (bytes.size() >> 1) + (std::size_t{1} << 20));
    if (::setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof wanted) != 0) {
      (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);  // EMSGSIZE will tell
    }
    send_buffer_ = static_cast<std::size_t>(wanted);
  }
  if (mnl_socket_sendto(socket_.get(), bytes.data(), bytes.size()) < 0) {
    return sys_fail("netlink send", errno);
  }
  return {};
}

namespace {

// Of a message that has room for the header of nfnetlink.
std::span<const std::uint8_t> attributes_of(const nlmsghdr* message) {
  return {
      static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(message)) + sizeof(nfgenmsg),
      mnl_nlmsg_get_payload_len(message) - sizeof(nfgenmsg)};
}

}  // namespace

// The kernel works inside sendmsg: every answer is in the receive queue by now.
Socket::Answers Socket::answers(std::uint32_t last, const Each& each) {
  const int fd = mnl_socket_get_fd(socket_.get());
  Answers out;
  for (;;) {
    const ssize_t got = ::recv(fd, receive_.data(), receive_.size(), MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      if (errno == ENOBUFS) {
        out.overflow = true;
        continue;
      }
      return out;  // EAGAIN: all read
    }
    int left = static_cast<int>(got);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(receive_.data());
         mnl_nlmsg_ok(message, left);
         message = mnl_nlmsg_next(message, &left)) {
      if (message->nlmsg_type != NLMSG_ERROR) {
        const std::size_t length = mnl_nlmsg_get_payload_len(message);
        if (each && message->nlmsg_type >= NLMSG_MIN_TYPE && length >= sizeof(nfgenmsg)) {
          each(attributes_of(message));
        }
        continue;
      }
      const auto* answer = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message));
      out.last = out.last || message->nlmsg_seq == last;
      if (answer->error != 0) {
        out.errors.push_back({message->nlmsg_seq, -answer->error});
      }
    }
  }
}

Result<> Socket::commit(Batch& batch, std::vector<MessageError>* errors) {
  const std::uint32_t last = batch.messages();
  if (auto sent = send(batch.finish()); !sent) {
    return sent;
  }
  const Answers got = answers(last);
  if (errors != nullptr) {
    errors->insert(errors->end(), got.errors.begin(), got.errors.end());
  }
  if (!got.errors.empty()) {
    const MessageError& first = got.errors.front();
    return sys_fail(
        ("transaction refused at message " + std::to_string(first.sequence)).c_str(),
        first.sys_errno);
  }
  if (!got.last) {
    return fail(
        Errc::Stale,
        got.overflow ? "answers to the transaction were lost" : "no answer to the transaction",
        ENOBUFS);
  }
  return {};
}

Result<> Socket::send_each(Messages& messages, std::vector<MessageError>& errors) {
  return ask(messages, errors, {});
}

Result<> Socket::ask(Messages& messages, std::vector<MessageError>& errors, const Each& each) {
  if (messages.empty()) {
    return {};
  }
  messages.ask_for_answer();
  if (auto sent = send(messages.bytes()); !sent) {
    return sent;
  }
  Answers got = answers(messages.messages(), each);
  if (got.overflow || !got.last) {
    return fail(Errc::Stale, "answers of the kernel were lost", ENOBUFS);
  }
  errors = std::move(got.errors);
  return {};
}

Result<> Socket::dump(
    std::uint16_t subsystem,
    std::uint16_t type,
    std::uint8_t family,
    std::span<const std::uint8_t> attributes,
    const std::function<void(std::span<const std::uint8_t> attributes)>& each) {
  std::vector<std::uint8_t> request(
      MNL_ALIGN(sizeof(nlmsghdr)) + sizeof(nfgenmsg) + attributes.size());
  nlmsghdr head{};
  head.nlmsg_len = static_cast<std::uint32_t>(request.size());
  head.nlmsg_type = static_cast<std::uint16_t>(subsystem << 8 | type);
  head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  head.nlmsg_seq = ++dump_sequence_;
  nfgenmsg generic{};
  generic.nfgen_family = family;
  generic.version = NFNETLINK_V0;
  std::memcpy(request.data(), &head, sizeof head);
  std::memcpy(request.data() + sizeof head, &generic, sizeof generic);
  if (!attributes.empty()) {
    std::memcpy(
        request.data() + sizeof head + sizeof generic, attributes.data(), attributes.size());
  }
  if (auto sent = send(request); !sent) {
    return sent;
  }
  bool interrupted = false;
  for (;;) {
    const ssize_t got = mnl_socket_recvfrom(socket_.get(), receive_.data(), receive_.size());
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return sys_fail("netlink dump", errno);
    }
    int left = static_cast<int>(got);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(receive_.data());
         mnl_nlmsg_ok(message, left);
         message = mnl_nlmsg_next(message, &left)) {
      if (message->nlmsg_seq != dump_sequence_) {
        continue;  // an answer to an earlier request that was given up
      }
      interrupted = interrupted || (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (const auto error = end_of_answer(message)) {
        if (*error != 0) {
          return sys_fail("netlink dump", *error);
        }
        if (interrupted) {
          return fail(Errc::Again, "the table changed during the dump", EINTR);
        }
        return {};
      }
      if (mnl_nlmsg_get_payload_len(message) >= sizeof(nfgenmsg)) {
        each(attributes_of(message));
      }
    }
  }
}

}  // namespace shunt::netlink
