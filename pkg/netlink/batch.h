// Many netlink messages as one write, and the attributes in them. Grows as needed; sizes are the
// kernel's (a nested attribute holds at most 64 KiB, a message 4 GiB).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

struct nlmsghdr;

namespace shunt::netlink {

// One transaction of nfnetlink: BATCH_BEGIN, messages, BATCH_END. Messages are numbered from 1 in
// the order of begin(); the kernel's errors name that number.
class Batch {
 public:
  explicit Batch(std::uint16_t subsystem);

  // Opens the next message. `type` is the subsystem's own message number; `flags` are NLM_F_*
  // beyond NLM_F_REQUEST.
  void begin(std::uint16_t type, std::uint16_t flags, std::uint8_t family);
  void put(std::uint16_t attribute, std::span<const std::uint8_t> bytes);
  void put_string(
      std::uint16_t attribute, std::string_view text);  // NUL-terminated, as the kernel wants it
  void put_be32(std::uint16_t attribute, std::uint32_t value);
  std::size_t nest(std::uint16_t attribute);
  void end_nest(std::size_t nest);
  std::size_t nest_size(std::size_t nest) const { return bytes_.size() - nest; }
  // Lets `write` fill in up to `room` bytes after the header, as libnftnl's builders do.
  void payload(std::size_t room, const std::function<void(nlmsghdr*)>& write);
  void end();

  // Closes the transaction; the last message asks for an acknowledgement, so that success can be
  // told from silence.
  std::span<const std::uint8_t> finish();
  std::uint32_t messages() const { return sequence_ - 1; }  // without BATCH_BEGIN and BATCH_END
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return messages() == 0; }

 private:
  void header(
      std::uint16_t full_type, std::uint16_t flags, std::uint8_t family, std::uint16_t resource);

  std::uint16_t subsystem_;
  std::uint32_t sequence_ = 0;
  std::size_t message_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace shunt::netlink
