// Notices become Events of the cluster, on a thread of their own.
//
//   events::Recorder recorder(connector, events::reporter_on(hostname));
//   recorder.start();
//   options.notices = recorder.sink();
//
// Whoever records never waits for the server: what does not fit into the queue is dropped and
// counted.
#pragma once

#include <cstdint>
#include <memory>

#include "apiserver/connector.h"
#include "events/sender.h"
#include "kube/notice.h"

namespace shunt::events {

struct RecorderStatus {
  std::uint64_t recorded = 0;  // notices that came
  std::uint64_t sent = 0;      // requests the server took; a series is one now and then
  std::uint64_t dropped = 0;   // the queue was full
  std::uint64_t bounded = 0;   // more than an object may cause
  std::uint64_t refused = 0;   // the server said no
  std::uint64_t given_up = 0;  // the server could not be reached for two minutes
};

class Recorder {
 public:
  static constexpr std::size_t kMaxQueue = 1000;

  // `connector` must outlive it.
  Recorder(apiserver::Connector& connector, SenderOptions options);
  Recorder(apiserver::Connector& connector, Reporter reporter);
  ~Recorder();  // stops
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void start();
  void stop();  // within a second, wherever the server hangs; what is queued is not sent

  void record(const kube::Notice& notice);  // any thread, before start() as well
  kube::NoticeSink sink();                  // record(), for as long as the recorder lives
  RecorderStatus status() const;            // any thread

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shunt::events
