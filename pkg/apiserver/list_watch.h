// The list/watch state machine of one resource (spec/api-objects.md §8), over the seams of
// transport.h. Runs on one thread; only status() may be called from others.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/complaints.h"
#include "apiserver/reflector.h"
#include "apiserver/transport.h"
#include "apiserver/watch_request.h"
#include "apiserver/watch_rules.h"
#include "kube/decode_json.h"
#include "kube/decode_protobuf.h"

namespace shunt::apiserver {

template <typename T>
class ListWatch {
 public:
  using Outbox = Mailbox<std::shared_ptr<const T>>;
  ListWatch(
      ReflectorOptions options,
      Transport& transport,
      Waiter& waiter,
      Random random,
      Outbox& outbox);

  void run();  // until the waiter says stop
  ReflectorStatus status() const;

 private:
  // A complete list, whose objects are in the outbox already.
  struct Listing {
    std::string resource_version;
    std::size_t objects = 0;
  };
  struct Stream;  // one open watch

  void run_cycle();
  NextStep streaming_list();
  NextStep classic_list();
  NextStep live_watch();

  tl::expected<Listing, ApiError> list(const std::string& resource_version);
  // The objects go out as they arrive; when the page turns out to be broken some of them have,
  // which does no harm: each is what the server has, and a list that does not end removes nothing.
  tl::expected<kube::ListMeta, ApiError> list_page(const ListRequest& request, Listing& out);

  StreamEnd watch(Stream& stream, const WatchRequest& request);
  bool take_frame(Stream& stream, std::string_view frame);
  void take_initial_event(Stream& stream, kube::WatchEvent<T> event);
  void take_live_event(kube::WatchEvent<T> event);

  Exchange send(Request request, bool is_watch, const AnswerSink& sink);
  bool refuses_format(const Exchange& exchange);
  void finish_list(Listing listing);
  void upsert(T&& object);
  void begin_list();
  void report(const kube::DecodeIssue& issue, std::string_view uid = "");
  NextStep decided(NextStep next, const StreamEnd& end) const;
  bool back_off();
  std::chrono::seconds watch_timeout();
  void touch();

  const ReflectorOptions options_;
  const ResourceQuery query_;
  Transport* transport_;
  Waiter* waiter_;
  Random random_;
  Outbox* outbox_;
  Backoff backoff_;
  Complaints complaints_;

  std::string last_version_;          // "": nothing seen yet
  bool version_unavailable_ = false;  // the server does not have last_version_
  bool paginated_ = false;            // lists at "0" turned out to be paged
  bool json_only_ = false;            // the server has nothing else for this resource

  mutable std::mutex status_mutex_;
  ReflectorStatus status_;
};

extern template class ListWatch<kube::Service>;
extern template class ListWatch<kube::EndpointSlice>;
extern template class ListWatch<kube::Node>;
extern template class ListWatch<kube::ServiceCidr>;

}  // namespace shunt::apiserver
