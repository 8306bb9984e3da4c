#include "netlink/requests.h"

#include <linux/netlink.h>

namespace shunt::netlink {

void Requests::open(std::uint16_t type, std::uint16_t flags, std::span<const std::uint8_t> head) {
  nlmsghdr message{};
  message.nlmsg_type = type;
  message.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof message + head.size());
  std::memcpy(bytes_.data() + at, &message, sizeof message);
  std::memcpy(bytes_.data() + at + sizeof message, head.data(), head.size());
}

void Requests::end() {
  const auto length = static_cast<std::uint32_t>(bytes_.size() - start());
  std::memcpy(bytes_.data() + start(), &length, sizeof length);
  ends_.push_back(bytes_.size());
}

void Requests::put_u16(std::uint16_t attribute, std::uint16_t value) {
  std::uint8_t bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  put(attribute, bytes);
}

void Requests::clear() {
  bytes_.clear();
  ends_.clear();
}

std::span<const std::uint8_t> Requests::operator[](std::size_t index) const {
  const std::size_t from = index == 0 ? 0 : ends_[index - 1];
  return std::span(bytes_).subspan(from, ends_[index] - from);
}

}  // namespace shunt::netlink
