// One relayed TCP connection: a client on this machine, an endpoint, and what is between them.
//
// Bytes are read only as fast as the other side takes them: at most one read of kRead bytes waits
// in each direction. The end of one direction is passed on and leaves the other open; an error of
// one side resets the other.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "relay/poller.h"

namespace shunt::relay {

class TcpPair : public Poller::Client {
 public:
  static constexpr std::size_t kRead = 65'536;

  // `upstream` may still be on its way. The pair puts itself into `finished`, once.
  TcpPair(
      Poller& poller, UniqueFd client, UniqueFd upstream, std::vector<const TcpPair*>& finished);
  TcpPair(const TcpPair&) = delete;
  TcpPair& operator=(const TcpPair&) = delete;
  ~TcpPair() override;

  void ready(int fd, std::uint32_t events) override;

 private:
  struct Direction {
    std::string waiting;  // read, not written yet
    bool ended = false;   // nothing more to read
    bool passed = false;  // and the other side knows
  };

  bool established();
  bool read(int from, int to, Direction& direction);
  bool write(int to, Direction& direction);
  bool update_interest();
  void abort();
  void finish();

  Poller& poller_;
  UniqueFd client_;
  UniqueFd upstream_;
  std::vector<const TcpPair*>& finished_pairs_;
  bool connecting_ = true;
  bool finished_ = false;
  Direction up_;
  Direction down_;
};

}  // namespace shunt::relay
