#include "bench/suite/generation.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "bench/suite/nft_socket.h"

namespace shunt::bench {
namespace {

constexpr std::chrono::microseconds kBetweenLooks{500};

std::uint32_t ask_generation(int fd) {
  struct {
    nlmsghdr head;
    nfgenmsg generic;
  } request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  if (::send(fd, &request, sizeof request, 0) < 0) {
    throw std::runtime_error("nf_tables does not tell its generation");
  }
  std::array<std::uint8_t, 4096> buffer{};
  const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
  std::uint32_t generation = 0;
  for_each_message(
      {buffer.data(), static_cast<std::size_t>(got > 0 ? got : 0)}, [&](const NftMessage& message) {
        generation = number_attribute(message.attributes, NFTA_GEN_ID);
      });
  return generation;
}

}  // namespace

std::uint32_t generation_of(const lab::Netns& where) {
  return where.run([] { return ask_generation(open_nft_socket(false).get()); });
}

GenerationWatch::GenerationWatch(const lab::Netns& where)
    : fd_(where.run([] { return open_nft_socket(false); })) {
  std::uint32_t seen = ask_generation(fd_.get());
  thread_ = std::thread([this, seen]() mutable {
    while (!stop_) {
      const std::uint32_t now = ask_generation(fd_.get());
      if (now != seen) {
        seen = now;
        last_change_ = now_ns();
        ++changes_;
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
  });
}

GenerationWatch::~GenerationWatch() {
  stop_ = true;
  thread_.join();
}

}  // namespace shunt::bench
