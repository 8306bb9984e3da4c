#include "netlink/messages.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <cstring>

namespace shunt::netlink {
namespace {

template <typename T>
void put_value(Attributes& attributes, std::uint16_t attribute, T value) {
  std::uint8_t bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  attributes.put(attribute, bytes);
}

}  // namespace

void Attributes::put(std::uint16_t attribute, std::span<const std::uint8_t> bytes) {
  const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + bytes.size()), attribute};
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof head + MNL_ALIGN(bytes.size()));
  std::memcpy(bytes_.data() + at, &head, sizeof head);
  if (!bytes.empty()) {
    std::memcpy(bytes_.data() + at + sizeof head, bytes.data(), bytes.size());
  }
}

void Attributes::put_string(std::uint16_t attribute, std::string_view text) {
  const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + text.size() + 1), attribute};
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof head + MNL_ALIGN(text.size() + 1));
  std::memcpy(bytes_.data() + at, &head, sizeof head);
  std::memcpy(bytes_.data() + at + sizeof head, text.data(), text.size());
}

void Attributes::put_u8(std::uint16_t attribute, std::uint8_t value) {
  put_value(*this, attribute, value);
}

void Attributes::put_be16(std::uint16_t attribute, std::uint16_t value) {
  put_value(*this, attribute, htons(value));
}

void Attributes::put_be32(std::uint16_t attribute, std::uint32_t value) {
  put_value(*this, attribute, htonl(value));
}

void Attributes::put_u32(std::uint16_t attribute, std::uint32_t value) {
  put_value(*this, attribute, value);
}

std::size_t Attributes::nest(std::uint16_t attribute) {
  const std::size_t at = bytes_.size();
  put(static_cast<std::uint16_t>(attribute | NLA_F_NESTED), {});
  return at;
}

void Attributes::end_nest(std::size_t nest) {
  const auto length = static_cast<std::uint16_t>(bytes_.size() - nest);
  std::memcpy(bytes_.data() + nest, &length, sizeof length);
}

void Messages::header(
    std::uint16_t full_type, std::uint16_t flags, std::uint8_t family, std::uint16_t resource) {
  message_ = bytes_.size();
  bytes_.resize(bytes_.size() + sizeof(nlmsghdr) + sizeof(nfgenmsg));
  nlmsghdr message{};
  message.nlmsg_type = full_type;
  message.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  message.nlmsg_seq = sequence_++;
  nfgenmsg generic{};
  generic.nfgen_family = family;
  generic.version = NFNETLINK_V0;
  generic.res_id = htons(resource);
  std::memcpy(bytes_.data() + message_, &message, sizeof message);
  std::memcpy(bytes_.data() + message_ + sizeof message, &generic, sizeof generic);
}

void Messages::begin(std::uint16_t type, std::uint16_t flags, std::uint8_t family) {
  header(static_cast<std::uint16_t>(subsystem_ << 8 | type), flags, family, 0);
}

void Messages::payload(std::size_t room, const std::function<void(nlmsghdr*)>& write) {
  const std::size_t used = bytes_.size() - message_;
  bytes_.resize(bytes_.size() + room);
  auto* message = reinterpret_cast<nlmsghdr*>(bytes_.data() + message_);
  message->nlmsg_len = static_cast<std::uint32_t>(used);
  write(message);
  bytes_.resize(message_ + message->nlmsg_len);
}

void Messages::end() {
  const auto length = static_cast<std::uint32_t>(bytes_.size() - message_);
  std::memcpy(bytes_.data() + message_, &length, sizeof length);
}

void Messages::ask_for_answer() {
  nlmsghdr last{};
  std::memcpy(&last, bytes_.data() + message_, sizeof last);
  last.nlmsg_flags |= NLM_F_ACK;
  std::memcpy(bytes_.data() + message_, &last, sizeof last);
}

void Messages::clear() {
  bytes_.clear();
  sequence_ = 1;
  message_ = 0;
}

}  // namespace shunt::netlink
