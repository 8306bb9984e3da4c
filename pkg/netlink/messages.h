// Netlink attributes and messages of nfnetlink, written one after the other into one buffer. Grows
// as needed; sizes are the kernel's (a nested attribute holds at most 64 KiB, a message 4 GiB).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

struct nlmsghdr;

namespace shunt::netlink {

// Attributes alone: what a dump request carries after its header.
class Attributes {
 public:
  void put(std::uint16_t attribute, std::span<const std::uint8_t> bytes);
  void put_string(
      std::uint16_t attribute, std::string_view text);  // NUL-terminated, as the kernel wants it
  void put_u8(std::uint16_t attribute, std::uint8_t value);
  void put_be16(std::uint16_t attribute, std::uint16_t value);
  void put_be32(std::uint16_t attribute, std::uint32_t value);
  void put_u32(std::uint16_t attribute, std::uint32_t value);  // in the order of this machine
  std::size_t nest(std::uint16_t attribute);
  void end_nest(std::size_t nest);
  std::size_t nest_size(std::size_t nest) const { return bytes_.size() - nest; }

  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  std::size_t size() const { return bytes_.size(); }
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 protected:
  std::vector<std::uint8_t> bytes_;
};

// Messages of one subsystem that stand each for itself: the kernel obeys those it can and names the
// others. Numbered from 1 in the order of begin(); the kernel's answers name that number.
class Messages : public Attributes {
 public:
  explicit Messages(std::uint16_t subsystem) : subsystem_(subsystem) {}

  // Opens the next message. `type` is the subsystem's own message number; `flags` are NLM_F_*
  // beyond NLM_F_REQUEST.
  void begin(std::uint16_t type, std::uint16_t flags, std::uint8_t family);
  // Lets `write` fill in up to `room` bytes after the header, as libnftnl's builders do.
  void payload(std::size_t room, const std::function<void(nlmsghdr*)>& write);
  void end();

  // Asks for an answer to the last message, so that success can be told from silence.
  void ask_for_answer();
  void clear();  // the buffer is kept for the next ones

  std::uint32_t messages() const { return sequence_ - 1; }
  bool empty() const { return messages() == 0; }

 protected:
  void header(
      std::uint16_t full_type, std::uint16_t flags, std::uint8_t family, std::uint16_t resource);

  std::uint16_t subsystem_;
  std::uint32_t sequence_ = 1;  // of the next message

 private:
  std::size_t message_ = 0;
};

}  // namespace shunt::netlink
