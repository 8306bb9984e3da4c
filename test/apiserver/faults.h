// Faults that a test asks for through PUT /_test/faults. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "test/apiserver/json.h"
#include "test/apiserver/response.h"

namespace shunt::test_api {

enum class FaultKind : std::uint8_t {
  Stall,              // headers, then nothing, until the fault is lifted
  Cut,                // the connection ends after `bytes` of body
  Status,             // a Status instead of an answer
  ErrorEvent,         // an ERROR event that ends a live watch
  MalformedJson,      // a broken frame in a live watch
  MalformedProtobuf,  // the same in the framing of protobuf
  Slow,               // `bytes` a write, `delay_ms` between them
  Refuse,             // closed at accept
  WrongContent,       // HTML, as from a proxy in the way
  Delay,              // answered `delay_ms` late
};

struct Fault {
  FaultKind kind = FaultKind::Status;
  std::string resource;  // "" or "any": all
  std::string verb;      // "" or "any": all
  bool live = false;     // strikes watches that are already open
  int code = 500;
  int retry_after = 0;
  std::string text;     // Status message, HTML body, or broken frame
  std::string variant;  // MalformedProtobuf: what is broken
  std::size_t bytes = 0;
  int delay_ms = 0;
  bool reset = false;               // Cut: TCP reset
  bool before_headers = false;      // Stall
  std::atomic<int> remaining = -1;  // -1: always
  std::atomic<bool> lifted = false;
};
using FaultPtr = std::shared_ptr<Fault>;

class Faults {
 public:
  // `on_change` wakes the open watches.
  explicit Faults(std::function<void()> on_change) : on_change_(std::move(on_change)) {}

  Result<> replace(const Json& list);  // nothing changes when one of them is wrong
  void clear();
  Json describe() const;

  bool take_refusal();
  std::vector<FaultPtr> take(std::string_view resource, std::string_view verb);
  // Live faults for a watch that has already been struck by `seen`.
  std::vector<FaultPtr> take_live(std::string_view resource, const std::vector<FaultPtr>& seen);

 private:
  std::vector<FaultPtr> current() const;

  const std::function<void()> on_change_;
  mutable std::mutex mutex_;
  std::vector<FaultPtr> faults_;
};

}  // namespace shunt::test_api
