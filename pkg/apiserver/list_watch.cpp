#include "apiserver/list_watch.h"

#include <cerrno>
#include <utility>

#include "base/log.h"

namespace shunt::apiserver {
namespace {

using log::kv;

constexpr std::size_t kMaxErrorBody = 2048;  // as much as client-go reads
constexpr std::size_t kMaxListBody = std::size_t{1} << 30;

ApiError malformed(std::string what) { return {ApiFailure::Other, std::nullopt, std::move(what)}; }

// An answer that is collected whole, up to a limit.
struct Body {
  AnswerHead head;
  std::string text;
  bool too_large = false;

  bool take(std::string_view piece) {
    const std::size_t limit = head.status == 200 ? kMaxListBody : kMaxErrorBody;
    too_large = text.size() + piece.size() > limit;
    text.append(piece.substr(0, limit - text.size()));
    return !too_large;
  }
};

}  // namespace

template <typename T>
struct ListWatch<T>::Stream {
  std::optional<Objects> initial;  // the objects of a streaming list, until its end bookmark
  kube::JsonFramer framer;
  Body answer;  // of an answer other than 200
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
      backoff_(options_.backoff, random_) {}

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

// Until the stream ends, live part included; what the reader holds is replaced at the end bookmark.
template <typename T>
NextStep ListWatch<T>::streaming_list() {
  for (int incomplete = 0;;) {
    Stream stream;
    stream.initial.emplace();
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
  deliver(std::move(*listing));
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
  for (;;) {
    auto page = list_page(request);
    if (!page && page.error().failure == ApiFailure::Expired && !request.continue_token.empty()) {
      // The pages took longer than the server keeps history: take everything in one answer.
      request = {resource_version, 0, ""};
      out = {};
      page = list_page(request);
    }
    if (!page) {
      return tl::unexpected(page.error());
    }
    report(page->issues);
    if (out.resource_version.empty()) {
      out.resource_version = page->meta.resource_version;
    }
    for (T& item : page->items) {
      auto object = std::make_shared<const T>(std::move(item));
      out.objects.insert_or_assign(to_string(object->meta.key), std::move(object));
    }
    request.continue_token = page->meta.continue_token;
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
tl::expected<kube::DecodedList<T>, ApiError> ListWatch<T>::list_page(const ListRequest& request) {
  Body body;
  const Exchange exchange = send(
      list_target(query_, request),
      /*is_watch=*/false,
      {.on_head =
           [&](const AnswerHead& head) {
             body = {.head = head, .text = {}};
             return true;
           },
       .on_body = [&](std::string_view piece) { return body.take(piece); }});
  if (exchange.head && exchange.head->status != 200) {
    return tl::unexpected(
        classify_answer(exchange.head->status, body.text, exchange.head->retry_after));
  }
  if (!exchange.end) {
    return tl::unexpected(classify_transport(exchange.end.error()));
  }
  if (body.too_large) {
    return tl::unexpected(malformed("a list of more than 1 GiB"));
  }
  auto decoded = kube::decode_list<T>(body.text);
  if (!decoded) {
    return tl::unexpected(malformed(decoded.error().what));
  }
  return std::move(*decoded);
}

template <typename T>
StreamEnd ListWatch<T>::watch(Stream& stream, const WatchRequest& request) {
  const auto started = waiter_->now();
  {
    const std::lock_guard lock(status_mutex_);
    ++status_.watches;
  }
  const Exchange exchange = send(
      watch_target(query_, request),
      /*is_watch=*/true,
      {.on_head =
           [&](const AnswerHead& head) {
             stream.answer = {.head = head, .text = {}};
             return true;
           },
       .on_body =
           [&](std::string_view piece) {
             if (stream.answer.head.status != 200) {
               return stream.answer.take(piece);
             }
             const auto fed = stream.framer.feed(
                 piece, [&](std::string_view frame) { return take_frame(stream, frame); });
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
    end.error =
        classify_answer(exchange.head->status, stream.answer.text, exchange.head->retry_after);
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
  auto event = kube::decode_watch_event<T>(frame);
  if (!event) {
    stream.error = malformed(event.error().what);
    return false;
  }
  if (event->type == kube::EventType::Error) {
    stream.error = classify_status(event->status);
    return false;
  }
  report(event->issues);
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
        deliver({event.meta.resource_version, std::move(*stream.initial)});
        stream.initial.reset();
      }
      break;
    case kube::EventType::Deleted:
      stream.initial->erase(to_string(event.meta.key));
      break;
    default:
      if (event.object) {
        stream.initial->insert_or_assign(
            to_string(event.meta.key), std::make_shared<const T>(std::move(*event.object)));
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
    outbox_->upsert(to_string(event.meta.key), std::make_shared<const T>(std::move(*event.object)));
  }
  if (!event.meta.resource_version.empty()) {
    last_version_ = event.meta.resource_version;
    const std::lock_guard lock(status_mutex_);
    status_.resource_version = last_version_;
  }
}

template <typename T>
Exchange ListWatch<T>::send(const std::string& target, bool is_watch, const AnswerSink& sink) {
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
    Exchange exchange = transport_->get(target, watched);
    const auto delay = resend_delay(exchange, is_watch);
    if (!delay || resends == kMaxResends || !waiter_->wait(*delay)) {
      return exchange;
    }
    log::debug(
        "request sent again",
        {kv("resource", query_.name), kv("attempt", resends + 1), kv("after_ms", delay->count())});
  }
}

template <typename T>
void ListWatch<T>::deliver(Listing listing) {
  const std::size_t count = listing.objects.size();
  last_version_ = std::move(listing.resource_version);
  version_unavailable_ = false;
  outbox_->replace(std::move(listing.objects));
  log::info(
      "listed",
      {kv("resource", query_.name), kv("objects", count), kv("resource_version", last_version_)});
  const std::lock_guard lock(status_mutex_);
  status_.synced = true;
  ++status_.lists;
  status_.resource_version = last_version_;
}

template <typename T>
void ListWatch<T>::report(const std::vector<kube::DecodeIssue>& issues) {
  if (issues.empty()) {
    return;
  }
  for (const kube::DecodeIssue& issue : issues) {
    log::warn(
        issue.object_lost ? "object set aside: it cannot be decoded"
                          : "part of an object set aside: it cannot be decoded",
        {kv("resource", query_.name), kv("object", issue.object), kv("issue", issue.what)});
  }
  const std::lock_guard lock(status_mutex_);
  status_.decode_errors += issues.size();
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
