#include "packet/settling.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

namespace shunt::conformance::packet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kGlance{10};  // between two questions to the API server

}  // namespace

NetfilterEar::NetfilterEar(const lab::Netns& where) {
  fd_ = where.run([] {
    UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_NETFILTER));
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      lab::raise_errno("netfilter socket");
    }
    for (const int group : {NFNLGRP_NFTABLES, NFNLGRP_CONNTRACK_DESTROY}) {
      if (::setsockopt(fd.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0) {
        lab::raise_errno("netfilter notifications");
      }
    }
    return fd;
  });
}

bool NetfilterEar::heard_within(milliseconds time) const {
  pollfd waited{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  ::poll(&waited, 1, static_cast<int>(time.count()));
  bool heard = false;
  std::array<char, 65536> buffer{};
  while (::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) >= 0 || errno == ENOBUFS) {
    heard = true;  // ENOBUFS: so much of it that some was lost
  }
  return heard;
}

void Settling::agent_starts() {
  for (const WatchState& watch : server_->watches()) {
    last_old_watch_ = std::max(last_old_watch_, watch.id);
  }
}

bool Settling::has_everything() const {
  std::set<std::string> watched;
  for (const WatchState& watch : server_->watches()) {
    if (watch.id > last_old_watch_) {
      if (!watch.up_to_date) {
        return false;
      }
      watched.insert(watch.resource);
    }
  }
  // What else an agent watches is its own affair.
  return watched.contains("services") && watched.contains("endpointslices");
}

std::optional<std::string> Settling::wait(
    milliseconds timeout, const std::function<std::optional<std::string>()>& problem) const {
  const Clock::time_point deadline = Clock::now() + timeout;
  bool delivered = false;
  Clock::time_point quiet_since;
  while (Clock::now() < deadline) {
    if (auto wrong = problem()) {
      return wrong;
    }
    if (!delivered && has_everything()) {
      delivered = true;
      quiet_since = Clock::now();
    }
    if (ear_.heard_within(kGlance)) {
      quiet_since = Clock::now();
    }
    if (delivered && Clock::now() - quiet_since >= quiet_) {
      return std::nullopt;
    }
  }
  return delivered ? "the agent does not settle: the kernel hears from it all the time"
                   : "the agent does not watch services and endpointslices";
}

}  // namespace shunt::conformance::packet
