#include "netlink/request_socket.h"

#include <libmnl/libmnl.h>
// By its whole path: netlink/socket.h is a file of ours as well.
#include <libnl3/netlink/socket.h>
#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "netlink/end_of_answer.h"
#include "netlink/requests.h"

namespace shunt::netlink {
namespace {

constexpr std::size_t kPacketBytes = std::size_t{64} << 10;
constexpr std::size_t kPacketRequests = 500;
// The kernel answers into the receive buffer while it obeys, and nobody reads before sendmsg
// returns: the answers to a whole packet must fit. Only refusals and the last request are answered,
// yet all may be refused. An answer without a copy of its request (NETLINK_CAP_ACK) is charged as
// 768 to 1 280 bytes, by kernel.
constexpr std::size_t kAnswerBytes = 2048;
constexpr int kReceiveBuffer = 1 << 20;  // the kernel doubles it: 1 024 answers
constexpr std::size_t kReadBytes = std::size_t{256} << 10;
constexpr timeval kReceiveTimeout{3, 0};
constexpr timeval kSendTimeout{30, 0};
constexpr int kReceiveTries = 10;  // a kernel that loads a module may take its time
constexpr int kDumpTries = 5;

}  // namespace

Errc request_errc(int sys_errno) {
  switch (sys_errno) {
    case EEXIST:
      return Errc::Exists;
    case ENOENT:
    case ESRCH:
    case EADDRNOTAVAIL:
    case ENODEV:
      return Errc::NotFound;
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case ENOMEM:
    case ENOBUFS:
    case ENETDOWN:
      return Errc::Again;
    case EPERM:
    case EACCES:
      return Errc::Denied;
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
      return Errc::Unsupported;
    default:
      return Errc::Invalid;
  }
}

tl::unexpected<Error> request_failure(const char* what, int sys_errno) {
  return fail(
      request_errc(sys_errno), std::string(what) + ": " + std::strerror(sys_errno), sys_errno);
}

RequestSocket::~RequestSocket() = default;

int RequestSocket::fd() const { return ::nl_socket_get_fd(socket_.get()); }

Result<std::unique_ptr<RequestSocket>> RequestSocket::open(int protocol) {
  std::unique_ptr<RequestSocket> made(new RequestSocket);
  made->socket_.reset(::nl_socket_alloc());
  if (!made->socket_) {
    return fail(Errc::Again, "netlink socket: no memory", ENOMEM);
  }
  if (const int error = ::nl_connect(made->socket_.get(), protocol); error < 0) {
    return fail(
        error == -NLE_PROTO_MISMATCH || error == -NLE_AF_NOSUPPORT ? Errc::Unsupported
                                                                   : Errc::Again,
        std::string("netlink socket: ") + ::nl_geterror(error));
  }
  const int fd = made->fd();
  const int on = 1;
  // Each of these makes things better where the kernel has it, and none is needed.
  (void)::setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  (void)::setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
  (void)::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kReceiveTimeout, sizeof kReceiveTimeout);
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout);
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) != 0) {
    (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  }
  const int send_buffer = static_cast<int>(kPacketBytes * 2);
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
  int granted = 0;
  socklen_t length = sizeof granted;
  if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &length) != 0 || granted < 0) {
    granted = 0;
  }
  made->requests_a_packet_ =
      std::clamp(static_cast<std::size_t>(granted) / kAnswerBytes, std::size_t{1}, kPacketRequests);
  made->buffer_.resize(kReadBytes);
  return made;
}

Result<std::unique_ptr<RequestSocket>> RequestSocket::open_route() { return open(NETLINK_ROUTE); }

Result<std::unique_ptr<RequestSocket>> RequestSocket::open_generic(const char* family) {
  auto made = open(NETLINK_GENERIC);
  if (!made) {
    return made;
  }
  const int number = ::genl_ctrl_resolve((*made)->socket_.get(), family);
  if (number <= 0) {
    const bool known = number == -NLE_OBJ_NOTFOUND;
    return fail(
        known ? Errc::Unsupported : Errc::Again,
        std::string("generic netlink family ") + family + ": " +
            (known ? "this kernel has none, or may not load it" : ::nl_geterror(number)));
  }
  (*made)->family_ = static_cast<std::uint16_t>(number);
  return made;
}

// Packs requests from `first` on; returns how many.
std::size_t RequestSocket::fill(const Requests& requests, std::size_t first) {
  packet_.clear();
  std::size_t last = 0;
  std::size_t count = 0;
  while (first + count < requests.count() && count < requests_a_packet_) {
    const std::span<const std::uint8_t> bytes = requests[first + count];
    if (count > 0 && packet_.size() + bytes.size() > kPacketBytes) {
      break;
    }
    last = packet_.size();
    packet_.insert(packet_.end(), bytes.begin(), bytes.end());
    nlmsghdr head{};
    std::memcpy(&head, packet_.data() + last, sizeof head);
    head.nlmsg_type = head.nlmsg_type == Requests::kGenericFamily ? family_ : head.nlmsg_type;
    head.nlmsg_seq = ++sequence_;
    std::memcpy(packet_.data() + last, &head, sizeof head);
    ++count;
  }
  // Asks for an answer to the last, so that success can be told from silence.
  nlmsghdr head{};
  std::memcpy(&head, packet_.data() + last, sizeof head);
  head.nlmsg_flags |= (head.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP ? 0 : NLM_F_ACK;
  std::memcpy(packet_.data() + last, &head, sizeof head);
  return count;
}

Result<> RequestSocket::send() {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto* to = reinterpret_cast<const sockaddr*>(&kernel);
  while (::sendto(fd(), packet_.data(), packet_.size(), 0, to, sizeof kernel) < 0) {
    if (errno != EINTR) {
      return request_failure("netlink send", errno);
    }
  }
  return {};
}

Result<std::size_t> RequestSocket::receive() {
  for (int tries = 0;;) {
    const ssize_t got = ::recv(fd(), buffer_.data(), buffer_.size(), 0);
    if (got >= 0) {
      return static_cast<std::size_t>(got);
    }
    const int error = errno;
    if (error == EINTR || (error == EAGAIN && ++tries < kReceiveTries)) {
      continue;
    }
    if (error == ENOBUFS) {
      while (::recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT) > 0) {
        // What is left belongs to what is given up now.
      }
    }
    return fail(Errc::Stale, std::string("netlink answer: ") + std::strerror(error), error);
  }
}

Result<> RequestSocket::answers(
    std::size_t first, std::size_t count, std::vector<RefusedRequest>& refused) {
  const std::uint32_t before = sequence_ - static_cast<std::uint32_t>(count);
  for (;;) {
    const auto got = receive();
    if (!got) {
      return tl::unexpected(got.error());
    }
    int left = static_cast<int>(*got);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer_.data());
         mnl_nlmsg_ok(message, left);
         message = mnl_nlmsg_next(message, &left)) {
      // Others are answers to what was given up earlier.
      const std::uint32_t number = message->nlmsg_seq - before;
      if (message->nlmsg_type != NLMSG_ERROR || number == 0 || number > count ||
          mnl_nlmsg_get_payload_len(message) < sizeof(int)) {
        continue;
      }
      int error = 0;
      std::memcpy(&error, mnl_nlmsg_get_payload(message), sizeof error);
      if (error != 0) {
        refused.push_back({first + number - 1, -error});
      }
      if (number == count) {
        return {};
      }
    }
  }
}

Result<> RequestSocket::send_each(const Requests& requests, std::vector<RefusedRequest>& refused) {
  refused.clear();
  for (std::size_t done = 0; done < requests.count();) {
    const std::size_t count = fill(requests, done);
    if (auto sent = send(); !sent) {
      if (done > 0) {
        sent.error().code = Errc::Stale;
      }
      return sent;
    }
    if (auto answered = answers(done, count, refused); !answered) {
      return answered;
    }
    done += count;
  }
  return {};
}

Result<> RequestSocket::ask(const Requests& question, const Each& each) {
  (void)fill(question, 0);
  if (auto sent = send(); !sent) {
    return sent;
  }
  bool interrupted = false;
  for (;;) {
    const auto got = receive();
    if (!got) {
      return tl::unexpected(got.error());
    }
    int left = static_cast<int>(*got);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer_.data());
         mnl_nlmsg_ok(message, left);
         message = mnl_nlmsg_next(message, &left)) {
      if (message->nlmsg_seq != sequence_) {
        continue;  // an answer to what was given up earlier
      }
      interrupted = interrupted || (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (const auto error = end_of_answer(message)) {
        if (*error != 0) {
          return request_failure("netlink question", *error);
        }
        if (interrupted) {
          return fail(Errc::Again, "there was a change during the dump", EINTR);
        }
        return {};
      }
      each(
          {static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(message)),
           mnl_nlmsg_get_payload_len(message)});
    }
  }
}

Result<> ask_until_whole(
    RequestSocket& socket,
    const Requests& question,
    const std::function<void()>& begin,
    const RequestSocket::Each& each) {
  for (int tries = 1;; ++tries) {
    begin();
    auto asked = socket.ask(question, each);
    if (asked || asked.error().code != Errc::Again || tries == kDumpTries) {
      return asked;
    }
  }
}

}  // namespace shunt::netlink
