// Keeps a Mailbox equal to one resource of the API server: list, then watch, for ever
// (spec/api-objects.md §7, §8).
//
// A Reflector owns one thread, started by start() and joined by stop(). It emits `replace` for
// every complete list (or completed streaming list) and `upsert`/`remove` for live events, keyed
// "namespace/name". While it cannot reach the server it emits nothing: what was known stays in
// force.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "apiserver/content.h"
#include "base/backoff.h"
#include "base/mailbox.h"
#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/notice.h"
#include "kube/service.h"

namespace shunt::apiserver {

class Connector;  // connector.h: how to reach the API server, and with which credentials

struct ReflectorOptions {
  std::string node_name;  // the fieldSelector of the Node watch
  bool streaming_lists = true;
  // A watch from which no byte came for this long is replaced: bookmarks come about once a minute.
  std::chrono::milliseconds stall_timeout{std::chrono::seconds(120)};
  std::chrono::seconds watch_timeout_min{
      300};  // the server is asked to end a watch after [min, 2*min)
  Backoff::Shape backoff;
  std::int64_t page_limit = 500;
  std::string accept{kAnyAccept};  // content.h
  // Hears of each object that cannot be read, once, as "CannotRead", on the thread of the
  // reflector; may be empty.
  kube::NoticeSink notices = {};
};

struct ReflectorStatus {
  bool synced = false;               // a complete list was delivered
  std::string resource_version;      // the last one seen
  Clock::time_point last_contact{};  // last byte from the server
  std::uint64_t lists = 0;
  std::uint64_t watches = 0;
  std::uint64_t decode_errors = 0;
};

// T: kube::Service, kube::EndpointSlice, kube::Node, kube::ServiceCidr.
template <typename T>
class Reflector {
 public:
  using Outbox = Mailbox<std::shared_ptr<const T>>;
  // `connector` and `outbox` must outlive the reflector.
  Reflector(Connector& connector, ReflectorOptions options, Outbox& outbox);
  ~Reflector();  // stops
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void start();
  void stop();  // returns within a second or so, also when the server hangs

  ReflectorStatus status() const;  // any thread

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

extern template class Reflector<kube::Service>;
extern template class Reflector<kube::EndpointSlice>;
extern template class Reflector<kube::Node>;
extern template class Reflector<kube::ServiceCidr>;

}  // namespace shunt::apiserver
