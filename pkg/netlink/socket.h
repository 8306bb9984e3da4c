// A netfilter netlink socket (nf_tables, conntrack): batches and dumps over libmnl.
//
// One thread. Forces its buffers, which needs CAP_NET_ADMIN in the initial user namespace; where
// that is refused, large batches fail with EMSGSIZE and say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

struct mnl_socket;

namespace shunt::netlink {

class Batch;
class Messages;

// What the kernel said of one message.
struct MessageError {
  std::uint32_t sequence = 0;  // number of the message; 0: the transaction as a whole
  int sys_errno = 0;
};

class Socket {
 public:
  static Result<std::unique_ptr<Socket>> open();
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // The number by which the kernel names this socket to those who hear of its changes.
  std::uint32_t port() const;

  // Sends one transaction and reads every answer. Success: applied. Failure: nothing was applied;
  // `errors` (when given) has what the kernel said. Errc::Stale when no answer came at all
  // (ENOBUFS): the outcome is unknown, re-read.
  Result<> commit(Batch& batch, std::vector<MessageError>* errors = nullptr);

  // Sends messages that stand each for itself, and reads every answer. `errors` has those that the
  // kernel refused; it obeyed all others. Failure: nothing is known of any (Errc::Stale), or none
  // was sent.
  Result<> send_each(Messages& messages, std::vector<MessageError>& errors);

  // The same for questions: `each` gets the attributes of every answer. The kernel keeps each
  // answer in the receive buffer, in eight kilobytes of it or so: a few hundred at a time.
  Result<> ask(
      Messages& messages,
      std::vector<MessageError>& errors,
      const std::function<void(std::span<const std::uint8_t> attributes)>& each);

  // One dump request; calls `each` with the attributes of every message. A dump that the kernel
  // says was interrupted by a change answers Errc::Again: what was seen may be inconsistent.
  Result<> dump(
      std::uint16_t subsystem,
      std::uint16_t type,
      std::uint8_t family,
      std::span<const std::uint8_t> attributes,
      const std::function<void(std::span<const std::uint8_t> attributes)>& each);

 private:
  Socket() = default;
  Result<> send(std::span<const std::uint8_t> bytes);
  struct Answers {
    bool last = false;  // the last message was answered
    bool overflow = false;
    std::vector<MessageError> errors;
  };
  using Each = std::function<void(std::span<const std::uint8_t> attributes)>;
  Answers answers(std::uint32_t last, const Each& each = {});

  struct Close {
    void operator()(mnl_socket* socket) const noexcept;
  };
  std::unique_ptr<mnl_socket, Close> socket_;
  std::size_t send_buffer_ = 0;
  std::uint32_t dump_sequence_ = 0;
  std::vector<std::uint8_t> receive_;
};

// The class of a kernel error: what the caller does next.
Errc errc_of(int sys_errno);
tl::unexpected<Error> sys_fail(const char* what, int sys_errno);

}  // namespace shunt::netlink
