#include "apiserver/list_watch.h"

#include <cerrno>
#include <type_traits>
#include <utility>

#include "base/log.h"

namespace shunt::apiserver {
namespace {

using log::kv;

// Of text 512 bytes are kept, but half a Status is none.
constexpr std::size_t kMaxErrorBody = std::size_t{64} << 10;

ApiError malformed(std::string what) { return {ApiFailure::Other, std::nullopt, std::move(what)}; }

// An answer other than 200, which says what is wrong.
struct Refusal {
  AnswerHead head;
  std::string text;

  bool take(std::string_view piece) {
    text.append(piece.substr(0, kMaxErrorBody - text.size()));
    return text.size() < kMaxErrorBody;
  }
};

ApiError refused(const Refusal& refusal) {
  return classify_answer(refusal.head.status, refusal.text, refusal.head.retry_after);
}

template <typename T>
constexpr kube::Notice::Kind notice_kind() {
  using Kind = kube::Notice::Kind;
  if constexpr (std::is_same_v<T, kube::Service>) {
    return Kind::Service;
  } else if constexpr (std::is_same_v<T, kube::EndpointSlice>) {
    return Kind::EndpointSlice;
  } else if constexpr (std::is_same_v<T, kube::Node>) {
    return Kind::Node;
  } else {
    return Kind::ServiceCidr;
  }
}

}  // namespace

template <typename T>
struct ListWatch<T>::Stream {
  std::optional<Listing> initial;  // a streaming list, until its end bookmark
  Refusal refusal;                 // the head alone when the answer is 200
  Format format = Format::Json;
  kube::JsonFramer json;
  kube::protobuf::Framer protobuf;
  std::optional<ApiError> error;
  std::uint64_t events = 0;
};

template <typename T>
ListWatch<T>::ListWatch(
    ReflectorOptions options, Transport& transport, Waiter& waiter, Random random, Outbox& outbox)
    : options_(std::move(options)),
      query_(resource_query<T>(options_.node_name)),
      transport_(&transport),
      waiter_(&waiter),
      random_(std::move(random)),
      outbox_(&outbox),
      backoff_(options_.backoff, random_),
      complaints_(notice_kind<T>()) {}

template <typename T>
void ListWatch<T>::run() {
  while (!waiter_->stopping()) {
    run_cycle();
    if (!back_off()) {
      return;
    }
  }
}

template <typename T>
ReflectorStatus ListWatch<T>::status() const {
  const std::lock_guard lock(status_mutex_);
  return status_;
}

template <typename T>
void ListWatch<T>::run_cycle() {
  NextStep next = options_.streaming_lists ? streaming_list() : NextStep::ClassicList;
  if (next == NextStep::ClassicList && !waiter_->stopping()) {
    next = classic_list();
  }
  while (next == NextStep::Reopen || (next == NextStep::ReopenAfterDelay && back_off())) {
    if (waiter_->stopping()) {
      return;
    }
    next = live_watch();
  }
}

// Until the stream ends, live part included.
template <typename T>
NextStep ListWatch<T>::streaming_list() {
  for (int incomplete = 0;;) {
    Stream stream;
    stream.initial.emplace();
    begin_list();
    const std::string version = version_unavailable_ ? "" : last_version_;
    const StreamEnd end = watch(
        stream,
        {.resource_version = version, .send_initial_events = true, .timeout = watch_timeout()});
    if (!stream.initial) {
      return decided(after_watch(end), end);
    }
    const NextStep next = decided(after_streaming_list(end, !version.empty(), incomplete), end);
    incomplete += end.error ? 0 : 1;
    if (next == NextStep::ReopenWithoutVersion) {
      version_unavailable_ = true;
    } else if (next == NextStep::ReopenAfterDelay ? !back_off() : next != NextStep::Reopen) {
      return next;
    }
    if (waiter_->stopping()) {
      return NextStep::LeaveCycle;
    }
  }
}

template <typename T>
NextStep ListWatch<T>::classic_list() {
  auto listing = list(version_unavailable_ ? "" : last_version_.empty() ? "0" : last_version_);
  if (!listing && (listing.error().failure == ApiFailure::Expired ||
                   listing.error().failure == ApiFailure::TooLargeVersion)) {
    version_unavailable_ = true;
    listing = list("");
  }
  if (!listing) {
    return decided(NextStep::LeaveCycle, {.error = listing.error()});
  }
  finish_list(std::move(*listing));
  return NextStep::Reopen;
}

template <typename T>
NextStep ListWatch<T>::live_watch() {
  Stream stream;
  const StreamEnd end = watch(
      stream,
      {.resource_version = last_version_,
       .send_initial_events = false,
       .timeout = watch_timeout()});
  return decided(after_watch(end), end);
}

template <typename T>
tl::expected<typename ListWatch<T>::Listing, ApiError> ListWatch<T>::list(
    const std::string& resource_version) {
  const bool paged = resource_version.empty() || resource_version == "0" || paginated_;
  ListRequest request{resource_version, paged ? options_.page_limit : 0, ""};
  Listing out;
  begin_list();
  for (;;) {
    auto page = list_page(request, out);
    if (!page && page.error().failure == ApiFailure::Expired && !request.continue_token.empty()) {
      // The pages took longer than the server keeps history: take everything in one answer.
      request = {resource_version, 0, ""};
      out = {};
      begin_list();
      page = list_page(request, out);
    }
    if (!page) {
      return tl::unexpected(page.error());
    }
    if (out.resource_version.empty()) {
      out.resource_version = page->resource_version;
    }
    request.continue_token = page->continue_token;
    if (request.continue_token.empty()) {
      break;
    }
    paginated_ = paginated_ || resource_version == "0";
  }
  if (out.resource_version.empty()) {
    return tl::unexpected(malformed("a list without a resourceVersion"));
  }
  return out;
}

template <typename T>
tl::expected<kube::ListMeta, ApiError> ListWatch<T>::list_page(
    const ListRequest& request, Listing& out) {
  const kube::ListSink<T> sink{
      .on_item =
          [&](T&& item) {
            upsert(std::move(item));
            ++out.objects;
          },
      .on_issue = [&](kube::DecodeIssue&& issue) { report(issue); }};
  Refusal refusal;
  std::unique_ptr<kube::ListDecoder<T>> decoder;  // of an answer that is 200
  Result<> decoded;
  const Exchange exchange = send(
      {.target = list_target(query_, request), .accept = {}, .may_be_compressed = true},
      /*is_watch=*/false,
      {.on_head =
           [&](const AnswerHead& head) {
             refusal = {.head = head, .text = {}};
             if (head.status == 200) {
               decoder = list_decoder<T>(format_of(head.content_type), sink);
             }
             return true;
           },
       .on_body =
           [&](std::string_view piece) {
             if (!decoder) {
               return refusal.take(piece);
             }
             decoded = decoder->feed(piece);
             return decoded.has_value();
           }});
  if (exchange.head && exchange.head->status != 200) {
    return tl::unexpected(refused(refusal));
  }
  if (!exchange.end) {
    return tl::unexpected(classify_transport(exchange.end.error()));
  }
  if (!decoded) {
    return tl::unexpected(malformed(decoded.error().what));
  }
  if (!decoder) {
    return tl::unexpected(malformed("an answer without a head"));
  }
  auto meta = decoder->finish();
  if (!meta) {
    return tl::unexpected(malformed(meta.error().what));
  }
  return std::move(*meta);
}

template <typename T>
StreamEnd ListWatch<T>::watch(Stream& stream, const WatchRequest& request) {
  const auto started = waiter_->now();
  {
    const std::lock_guard lock(status_mutex_);
    ++status_.watches;
  }
  const auto take = [&](std::string_view frame) { return take_frame(stream, frame); };
  const Exchange exchange = send(
      {.target = watch_target(query_, request), .accept = {}},
      /*is_watch=*/true,
      {.on_head =
           [&](const AnswerHead& head) {
             stream.refusal = {.head = head, .text = {}};
             stream.format = format_of(head.content_type);
             return true;
           },
       .on_body =
           [&](std::string_view piece) {
             if (stream.refusal.head.status != 200) {
               return stream.refusal.take(piece);
             }
             const auto fed = stream.format == Format::Protobuf ? stream.protobuf.feed(piece, take)
                                                                : stream.json.feed(piece, take);
             if (!fed) {
               stream.error = malformed(fed.error().what);
             }
             return !stream.error;
           }});
  StreamEnd end{
      .error = std::move(stream.error),
      .events = stream.events,
      .lasted = std::chrono::duration_cast<Millis>(waiter_->now() - started)};
  if (exchange.head && exchange.head->status != 200) {
    end.error = refused(stream.refusal);
  } else if (!exchange.end) {
    ApiError error = classify_transport(exchange.end.error());
    if (error.failure != ApiFailure::Lost) {
      end.error = std::move(error);
    }
  }
  return end;
}

template <typename T>
bool ListWatch<T>::take_frame(Stream& stream, std::string_view frame) {
  auto event = decode_watch_event<T>(stream.format, frame);
  if (!event) {
    stream.error = malformed(event.error().what);
    return false;
  }
  if (event->type == kube::EventType::Error) {
    stream.error = classify_status(event->status);
    return false;
  }
  for (const kube::DecodeIssue& issue : event->issues) {
    report(issue, event->meta.uid);
  }
  ++stream.events;
  if (stream.initial) {
    take_initial_event(stream, std::move(*event));
  } else {
    take_live_event(std::move(*event));
  }
  return true;
}

// These come in no order, so their resourceVersions say nothing; the end bookmark's does.
template <typename T>
void ListWatch<T>::take_initial_event(Stream& stream, kube::WatchEvent<T> event) {
  switch (event.type) {
    case kube::EventType::Bookmark:
      if (event.initial_events_end) {
        finish_list({event.meta.resource_version, stream.initial->objects});
        stream.initial.reset();
      }
      break;
    case kube::EventType::Deleted:
      outbox_->remove(to_string(event.meta.key));
      break;
    default:
      if (event.object) {
        upsert(std::move(*event.object));
        ++stream.initial->objects;
      }
  }
}

// An object that could not be decoded changes nothing: the reader keeps the one it has.
template <typename T>
void ListWatch<T>::take_live_event(kube::WatchEvent<T> event) {
  if (event.type == kube::EventType::Deleted) {
    if (!event.meta.key.name.empty()) {
      outbox_->remove(to_string(event.meta.key));
    }
  } else if (event.type != kube::EventType::Bookmark && event.object) {
    upsert(std::move(*event.object));
  }
  if (!event.meta.resource_version.empty()) {
    last_version_ = event.meta.resource_version;
    const std::lock_guard lock(status_mutex_);
    status_.resource_version = last_version_;
  }
}

template <typename T>
Exchange ListWatch<T>::send(Request request, bool is_watch, const AnswerSink& sink) {
  const AnswerSink watched{
      .on_head =
          [&](const AnswerHead& head) {
            touch();
            return sink.on_head(head);
          },
      .on_body =
          [&](std::string_view piece) {
            touch();
            return sink.on_body(piece);
          }};
  for (int resends = 0;; ++resends) {
    request.accept = json_only_ ? std::string(kJsonType) : options_.accept;
    Exchange exchange = transport_->send(request, watched);
    if (refuses_format(exchange)) {
      continue;  // once in a life
    }
    const auto delay = resend_delay(exchange, is_watch);
    if (!delay || resends >= kMaxResends || !waiter_->wait(*delay)) {
      return exchange;
    }
    log::debug(
        "request sent again",
        {kv("resource", query_.name), kv("attempt", resends + 1), kv("after_ms", delay->count())});
  }
}

// Extension API servers, and what stands before a server, may know JSON alone.
template <typename T>
bool ListWatch<T>::refuses_format(const Exchange& exchange) {
  const int status = exchange.head ? exchange.head->status : 0;
  if ((status != 406 && status != 415) || json_only_ || options_.accept == kJsonType) {
    return false;
  }
  json_only_ = true;
  log::info(
      "the server has no protobuf here, JSON from now on",
      {kv("resource", query_.name), kv("status", status)});
  return true;
}

template <typename T>
void ListWatch<T>::upsert(T&& object) {
  std::string key = to_string(object.meta.key);
  outbox_->upsert(std::move(key), std::make_shared<const T>(std::move(object)));
}

template <typename T>
void ListWatch<T>::begin_list() {
  outbox_->begin_list();
  complaints_.begin_list();
}

template <typename T>
void ListWatch<T>::finish_list(Listing listing) {
  last_version_ = std::move(listing.resource_version);
  version_unavailable_ = false;
  outbox_->end_list();
  complaints_.end_list();
  log::info(
      "listed",
      {kv("resource", query_.name),
       kv("objects", listing.objects),
       kv("resource_version", last_version_)});
  const std::lock_guard lock(status_mutex_);
  status_.synced = true;
  ++status_.lists;
  status_.resource_version = last_version_;
}

template <typename T>
void ListWatch<T>::report(const kube::DecodeIssue& issue, std::string_view uid) {
  log::warn(
      issue.object_lost ? "object set aside: it cannot be decoded"
                        : "part of an object set aside: it cannot be decoded",
      {kv("resource", query_.name), kv("object", issue.object), kv("issue", issue.what)});
  if (const auto notice = complaints_.take(issue, uid); notice && options_.notices) {
    options_.notices(*notice);
  }
  const std::lock_guard lock(status_mutex_);
  ++status_.decode_errors;
}

template <typename T>
NextStep ListWatch<T>::decided(NextStep next, const StreamEnd& end) const {
  if (waiter_->stopping()) {
    return NextStep::LeaveCycle;
  }
  if (end.error) {
    log::warn(
        "list or watch failed, will retry",
        {kv("resource", query_.name),
         kv("failure", to_string(end.error->failure)),
         kv("error", end.error->what)});
  } else {
    log::debug(
        "watch ended",
        {kv("resource", query_.name),
         kv("events", end.events),
         kv("lasted_ms", end.lasted.count()),
         kv("resource_version", last_version_)});
  }
  return next;
}

template <typename T>
bool ListWatch<T>::back_off() {
  return waiter_->wait(backoff_.next(waiter_->now()));
}

template <typename T>
std::chrono::seconds ListWatch<T>::watch_timeout() {
  const auto spread = static_cast<double>(options_.watch_timeout_min.count()) * random_();
  return options_.watch_timeout_min + std::chrono::seconds(static_cast<std::int64_t>(spread));
}

template <typename T>
void ListWatch<T>::touch() {
  const std::lock_guard lock(status_mutex_);
  status_.last_contact = waiter_->now();
}

template class ListWatch<kube::Service>;
template class ListWatch<kube::EndpointSlice>;
template class ListWatch<kube::Node>;
template class ListWatch<kube::ServiceCidr>;

}  // namespace shunt::apiserver
