// Takes one Event to the API server: create, or patch its series; again after a while when the
// server cannot be reached; not again when it says no. Over the seams of apiserver/transport.h.
//
// One thread.
#pragma once

#include <cstdint>
#include <string>

#include "apiserver/transport.h"
#include "events/event.h"
#include "events/token_bucket.h"

namespace shunt::events {

struct SenderOptions {
  Reporter reporter;
  int tries = 12;
  Millis retry_delay{10'000};  // and up to a quarter more
  // All Events together: five a second after a burst of ten, as client-go's clients do.
  TokenBucket::Shape rate{.burst = 10, .refill = Millis(200)};
};

enum class Outcome : std::uint8_t {
  Sent,
  Refused,  // by the server; said in the log
  GivenUp,  // it could not be reached
  Stopped,
};

class Sender {
 public:
  Sender(
      SenderOptions options,
      apiserver::Transport& transport,
      apiserver::Waiter& waiter,
      Random random);

  // Waits as long as it takes: two minutes with a server that cannot be reached.
  Outcome send(const Event& event);

 private:
  enum class Verdict : std::uint8_t { Sent, Missing, Refused, Unreachable };
  Verdict attempt(const Event& event, bool patch);
  apiserver::Request request_for(const Event& event, bool patch) const;
  Verdict judge(int status, const std::string& body, bool patch);
  bool wait_for_turn();

  const SenderOptions options_;
  apiserver::Transport* transport_;
  apiserver::Waiter* waiter_;
  Random random_;
  TokenBucket rate_;
  bool forbidden_said_ = false;
};

}  // namespace shunt::events
