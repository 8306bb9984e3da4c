#include "netlink/batch.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <cstring>

namespace shunt::netlink {

Batch::Batch(std::uint16_t subsystem) : subsystem_(subsystem) {
  header(NFNL_MSG_BATCH_BEGIN, 0, 0, subsystem);
  end();
}

void Batch::header(
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

void Batch::begin(std::uint16_t type, std::uint16_t flags, std::uint8_t family) {
  header(static_cast<std::uint16_t>(subsystem_ << 8 | type), flags, family, 0);
}

void Batch::put(std::uint16_t attribute, std::span<const std::uint8_t> bytes) {
  const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + bytes.size()), attribute};
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof head + MNL_ALIGN(bytes.size()));
  std::memcpy(bytes_.data() + at, &head, sizeof head);
  if (!bytes.empty()) {
    std::memcpy(bytes_.data() + at + sizeof head, bytes.data(), bytes.size());
  }
}

void Batch::put_string(std::uint16_t attribute, std::string_view text) {
  const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + text.size() + 1), attribute};
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof head + MNL_ALIGN(text.size() + 1));
  std::memcpy(bytes_.data() + at, &head, sizeof head);
  std::memcpy(bytes_.data() + at + sizeof head, text.data(), text.size());
}

void Batch::put_be32(std::uint16_t attribute, std::uint32_t value) {
  const std::uint32_t big_endian = htonl(value);
  std::uint8_t bytes[sizeof big_endian];
  std::memcpy(bytes, &big_endian, sizeof big_endian);
  put(attribute, bytes);
}

std::size_t Batch::nest(std::uint16_t attribute) {
  const std::size_t at = bytes_.size();
  put(static_cast<std::uint16_t>(attribute | NLA_F_NESTED), {});
  return at;
}

void Batch::end_nest(std::size_t nest) {
  const auto length = static_cast<std::uint16_t>(bytes_.size() - nest);
  std::memcpy(bytes_.data() + nest, &length, sizeof length);
}

void Batch::payload(std::size_t room, const std::function<void(nlmsghdr*)>& write) {
  const std::size_t used = bytes_.size() - message_;
  bytes_.resize(bytes_.size() + room);
  auto* message = reinterpret_cast<nlmsghdr*>(bytes_.data() + message_);
  message->nlmsg_len = static_cast<std::uint32_t>(used);
  write(message);
  bytes_.resize(message_ + message->nlmsg_len);
}

void Batch::end() {
  const auto length = static_cast<std::uint32_t>(bytes_.size() - message_);
  std::memcpy(bytes_.data() + message_, &length, sizeof length);
}

std::span<const std::uint8_t> Batch::finish() {
  nlmsghdr last{};
  std::memcpy(&last, bytes_.data() + message_, sizeof last);
  last.nlmsg_flags |= NLM_F_ACK;
  std::memcpy(bytes_.data() + message_, &last, sizeof last);
  const std::uint32_t count = sequence_;
  header(NFNL_MSG_BATCH_END, 0, 0, subsystem_);
  end();
  sequence_ = count;
  return bytes_;
}

}  // namespace shunt::netlink
