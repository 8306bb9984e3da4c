// GET with watch=true: the initial state if it was asked for, then changes as they happen.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "test/apiserver/api.h"
#include "test/apiserver/selector.h"

namespace shunt::test_api {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kDefaultTimeoutSeconds = 1800;

class Watch {
 public:
  Watch(
      Context context,
      const Target& target,
      ListOptions options,
      Selector selector,
      const std::string& user_agent,
      Response& response)
      : context_(context),
        target_(target),
        resource_(*target.table.resource),
        options_(std::move(options)),
        selector_(std::move(selector)),
        response_(response),
        deadline_(
            Clock::now() +
            std::chrono::seconds(options_.timeout_seconds.value_or(kDefaultTimeoutSeconds))) {
    context_.store.subscribe(target_.table.index, bell_);
    id_ = context_.stats.watch_opened(
        {.resource = target_.plural, .table = target_.table.index, .user_agent = user_agent});
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    context_.stats.watch_closed(id_);
    context_.store.unsubscribe(target_.table.index, bell_);
  }

  void run() {
    response_.begin(200, standard_headers("application/json"));
    if (!send_initial() || !response_.flush()) {
      return;
    }
    next_bookmark_ = Clock::now() + bookmark_interval();
    while (send_changes() && response_.flush() && strike() && rest()) {
    }
  }

 private:
  bool send_initial() {
    if (!options_.any_version() && !options_.send_initial_events) {
      told_ = options_.version;
      return true;
    }
    const Store::Listing listing = context_.store.list(target_.table.index);
    for (const ObjectPtr& object : listing.objects) {
      if (passes(object) && !send("ADDED", standalone(resource_, *object))) {
        return false;
      }
    }
    told_ = listing.version;
    running_ = true;
    return !options_.send_initial_events || !options_.bookmarks ||
           send_bookmark(R"(,"annotations":{"k8s.io/initial-events-end":"true"})");
  }

  // False: the stream is over.
  bool send_changes() {
    bell_.clear();
    const Store::Batch batch = context_.store.changes_after(target_.table.index, told_);
    if (told_ < (running_ ? batch.lost : batch.oldest)) {
      send_error(expired_watch(told_, batch.oldest));
      return false;
    }
    running_ = true;
    for (const Change& change : batch.changes) {
      if (!send_change(change)) {
        return false;
      }
    }
    told_ = std::max(told_, batch.version);
    return true;
  }

  // An object that stops matching is DELETED to this watch, in its last matching shape.
  bool send_change(const Change& change) {
    const bool was = change.before && passes(change.before);
    const bool is = change.after && passes(change.after);
    if (is) {
      return send(was ? "MODIFIED" : "ADDED", standalone(resource_, *change.after));
    }
    return !was ||
           send("DELETED", standalone(resource_, *at_version(*change.before, change.version)));
  }

  bool passes(const ObjectPtr& object) const {
    return (target_.ns.empty() || object->ns == target_.ns) &&
           (target_.name.empty() || object->name == target_.name) && selector_.matches(*object);
  }

  bool send(std::string_view type, std::string_view object) {
    return response_.write(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object));
  }

  bool send_bookmark(std::string_view annotations) {
    return send(
        "BOOKMARK",
        fmt::format(
            R"({{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}"{}}},{}}})",
            resource_.kind,
            resource_.api_version(),
            told_,
            annotations,
            resource_.bookmark_rest));
  }

  void send_error(const Status& status) {
    (void)send("ERROR", status.to_json().dump());  // the stream ends in any case
    (void)response_.end();
  }

  // Faults that strike open watches. False: the stream is over.
  bool strike() {
    for (const FaultPtr& fault : context_.faults.take_live(target_.plural, seen_)) {
      seen_.push_back(fault);
      if (!strike(*fault)) {
        return false;
      }
    }
    return true;
  }

  bool strike(const Fault& fault) {
    switch (fault.kind) {
      case FaultKind::Stall:
        return sit_out(context_, response_, target_.table.index, fault) && send_changes() &&
               response_.flush();
      case FaultKind::Cut:
        response_.shape.reset = fault.reset;
        if (fault.bytes == 0) {
          response_.drop();
          return false;
        }
        response_.shape.cut_after = fault.bytes;  // the next event dies on the way
        return true;
      case FaultKind::Slow:
        response_.shape.bytes_per_write = fault.bytes;
        response_.shape.write_delay_ms = fault.delay_ms;
        return true;
      case FaultKind::ErrorEvent: {
        Status status = generic(fault.code);
        if (!fault.text.empty()) {
          status.message = fault.text;
        }
        send_error(status);
        return false;
      }
      case FaultKind::MalformedJson:
        return response_.write(
                   fault.text.empty()
                       ? fmt::format(
                             "{{\"type\":\"MODIFIED\",\"object\":{{\"kind\":\"{}\",\"metadata\":"
                             "}}}}\n",
                             resource_.kind)
                       : fault.text) &&
               response_.flush();
      default:
        return true;
    }
  }

  // Waits for the next thing to do. False: the stream is over.
  bool rest() {
    context_.stats.watch_told(id_, told_);
    const auto until = options_.bookmarks ? std::min(deadline_, next_bookmark_) : deadline_;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    const int timeout_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    const Stream::Wait woken = response_.wait(bell_.fd(), timeout_ms);
    if (woken == Stream::Wait::Gone) {
      return false;
    }
    const bool over = Clock::now() >= deadline_;
    if (over && !send_changes()) {
      return false;
    }
    if (options_.bookmarks && (over || Clock::now() >= next_bookmark_)) {
      next_bookmark_ = Clock::now() + bookmark_interval();
      if (!send_changes() || !send_bookmark("") || !response_.flush()) {
        return false;
      }
    }
    if (over) {
      (void)response_.end();  // a client that left needs no goodbye
    }
    return !over;
  }

  std::chrono::milliseconds bookmark_interval() const {
    return std::chrono::milliseconds(context_.options.bookmark_interval_ms);
  }

  Context context_;
  const Target& target_;
  const Resource& resource_;
  const ListOptions options_;
  const Selector selector_;
  Response& response_;
  const Clock::time_point deadline_;
  Clock::time_point next_bookmark_;
  WakeFd bell_;
  std::uint64_t id_ = 0;
  std::uint64_t told_ = 0;  // every change up to here was sent or does not match
  bool running_ = false;    // the version to start from has been accepted
  std::vector<FaultPtr> seen_;
};

}  // namespace

Answer<> handle_watch(
    Context context, const Target& target, const Request& request, Response& response) {
  auto options = parse_list_options(request, context.options.streaming_lists);
  if (!options) {
    return refuse(options.error());
  }
  auto selector = Selector::parse(*target.table.resource, options->labels, options->fields);
  if (!selector) {
    return refuse(selector.error());
  }
  const std::uint64_t current = context.store.version();
  if (options->send_initial_events && options->version > current) {
    return refuse(version_too_large(options->version, current));
  }
  Watch(
      context,
      target,
      std::move(*options),
      std::move(*selector),
      request.header("user-agent"),
      response)
      .run();
  return {};
}

}  // namespace shunt::test_api
