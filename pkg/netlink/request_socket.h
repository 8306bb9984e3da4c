// A socket of rtnetlink or generic netlink, opened by libnl: many requests in one packet, and
// questions. socket.h is the same for netfilter.
//
// One thread, in one network namespace: that of the thread that opens it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/handle.h"
#include "base/result.h"

struct nl_sock;
extern "C" void nl_socket_free(struct nl_sock*);

namespace shunt::netlink {

class Requests;

struct RefusedRequest {
  std::size_t index = 0;
  int sys_errno = 0;
};

class RequestSocket {
 public:
  static Result<std::unique_ptr<RequestSocket>> open_route();
  // Asks the kernel to load what knows the family. Unsupported: nothing does.
  static Result<std::unique_ptr<RequestSocket>> open_generic(const char* family);
  ~RequestSocket();
  RequestSocket(const RequestSocket&) = delete;
  RequestSocket& operator=(const RequestSocket&) = delete;

  // Sends all, many in one packet, and reads every answer. `refused` has those that the kernel did
  // not obey, in order; it obeyed all others. A failure: none was sent, or nothing is known of any
  // (Errc::Stale).
  Result<> send_each(const Requests& requests, std::vector<RefusedRequest>& refused);

  // One question, with NLM_F_DUMP or without; `each` gets what follows the netlink header of every
  // answer, of any type. Errc::Again with EINTR: the kernel says that a change went through the
  // dump, so that what was seen may be incomplete.
  using Each = std::function<void(std::span<const std::uint8_t> payload)>;
  Result<> ask(const Requests& question, const Each& each);

 private:
  RequestSocket() = default;
  static Result<std::unique_ptr<RequestSocket>> open(int protocol);
  int fd() const;
  std::size_t fill(const Requests& requests, std::size_t first);
  Result<> send();
  Result<std::size_t> receive();
  Result<> answers(std::size_t first, std::size_t count, std::vector<RefusedRequest>& refused);

  Handle<nl_sock, nl_socket_free> socket_;
  std::uint16_t family_ = 0;
  std::uint32_t sequence_ = 0;  // of the last request sent
  std::size_t requests_a_packet_ = 1;
  std::vector<std::uint8_t> packet_;
  std::vector<std::uint8_t> buffer_;
};

// What the caller does next, where the family has no meaning of its own for an error.
Errc request_errc(int sys_errno);
tl::unexpected<Error> request_failure(const char* what, int sys_errno);

// Asks again when a change went through the dump, a few times. `begin` forgets what was seen.
Result<> ask_until_whole(
    RequestSocket& socket,
    const Requests& question,
    const std::function<void()>& begin,
    const RequestSocket::Each& each);

}  // namespace shunt::netlink
