#include "bench/suite/commits.h"

#include <linux/netfilter/nf_tables.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>
#include <vector>

#include "bench/suite/nft_socket.h"

namespace shunt::bench {

Commits::Commits(const lab::Netns& where, std::string table)
    : table_(std::move(table)), fd_(where.run([] { return open_nft_socket(true); })) {
  thread_ = std::thread([this] { listen(); });
}

Commits::~Commits() {
  stop_.ring();
  thread_.join();
}

void Commits::listen() {
  std::vector<std::uint8_t> buffer(std::size_t{256} * 1024);
  Commit current;
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{fd_.get(), POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
    (void)::poll(fds.data(), fds.size(), -1);  // EINTR: look again
    if (fds[1].revents != 0) {
      return;
    }
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    const Nanoseconds now = now_ns();
    if (got <= 0) {
      continue;  // ENOBUFS shows as a commit that is never seen, which the waiter reports
    }
    for_each_message(
        {buffer.data(), static_cast<std::size_t>(got)}, [&](const NftMessage& message) {
          const bool added = message.type == NFT_MSG_NEWSETELEM;
          if (added || message.type == NFT_MSG_DELSETELEM) {
            if (text_attribute(message.attributes, NFTA_SET_ELEM_LIST_TABLE) == table_) {
              auto& elements = current.sets[std::string(
                  text_attribute(message.attributes, NFTA_SET_ELEM_LIST_SET))];
              ++(added ? elements.added : elements.deleted);
              current.at = now;
            }
          } else if (message.type == NFT_MSG_NEWGEN && !current.sets.empty()) {
            {
              const std::lock_guard lock(mutex_);
              commits_.push_back(std::exchange(current, {}));
            }
            arrived_.notify_all();
          }
        });
  }
}

void Commits::forget() {
  const std::lock_guard lock(mutex_);
  commits_.clear();
}

std::optional<Commit> Commits::wait_for(std::string_view set, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!commits_.empty()) {
      Commit next = std::move(commits_.front());
      commits_.pop_front();
      if (next.touches(set)) {
        return next;
      }
    }
    if (arrived_.wait_until(lock, deadline) == std::cv_status::timeout && commits_.empty()) {
      return std::nullopt;
    }
  }
}

}  // namespace shunt::bench
