// GET with watch=true: the initial state if it was asked for, then changes as they happen.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "test/apiserver/api.h"
#include "test/apiserver/monotonic.h"
#include "test/apiserver/protobuf.h"
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
      const Request& request,
      Response& response)
      : context_(context),
        target_(target),
        resource_(*target.table.resource),
        options_(std::move(options)),
        selector_(std::move(selector)),
        encoding_(encoding_for(context, request, resource_)),
        head_(standalone_head(resource_)),
        response_(response),
        deadline_(
            Clock::now() +
            std::chrono::seconds(options_.timeout_seconds.value_or(kDefaultTimeoutSeconds))) {
    context_.store.subscribe(target_.table.index, bell_);
    id_ = context_.stats.watch_opened(
        {.resource = target_.plural,
         .table = target_.table.index,
         .user_agent = request.header("user-agent")});
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    context_.stats.watch_closed(id_);
    context_.store.unsubscribe(target_.table.index, bell_);
  }

  void run() {
    const bool protobuf = encoding_ == Encoding::AsProtobuf;
    response_.begin(200, standard_headers(protobuf ? kProtobufWatchType : kJsonType));
    if (!send_initial() || !flush()) {
      return;
    }
    next_bookmark_ = Clock::now() + bookmark_interval();
    while (send_changes() && flush() && strike() && rest()) {
    }
  }

 private:
  // Benchmarks measure from before the write: a client may be awake before it returns.
  bool flush() {
    sent_ns_ = response_.has_unsent() ? monotonic_ns() : sent_ns_;
    return response_.flush();
  }

  bool send_initial() {
    if (!options_.any_version() && !options_.send_initial_events) {
      told_ = options_.version;
      last_bookmark_ = told_;  // the client has it already
      return true;
    }
    const Store::Listing listing = context_.store.list(target_.table.index);
    for (const ObjectPtr& object : *listing.objects) {
      if (passes(object) && !send("ADDED", *object)) {
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
    const bool due = options_.bookmarks && batch.announced > last_bookmark_;
    return !due || send_bookmark("");
  }

  // An object that stops matching is DELETED to this watch, in its last matching shape.
  bool send_change(const Change& change) {
    const bool was = change.before && passes(change.before);
    const bool is = change.after && passes(change.after);
    if (is) {
      return send(was ? "MODIFIED" : "ADDED", *change.after);
    }
    return !was ||
           send(
               "DELETED", change.gone ? *change.gone : *at_version(*change.before, change.version));
  }

  bool passes(const ObjectPtr& object) const {
    return (target_.ns.empty() || object->ns == target_.ns) &&
           (target_.name.empty() || object->name == target_.name) && selector_.matches(*object);
  }

  // Nothing is encoded here: the bytes of the object are shared by all watches.
  bool send(std::string_view type, const Object& object) {
    if (encoding_ == Encoding::AsProtobuf) {
      return send_frame(
          type, resource_.api_version(), resource_.kind, object.protobuf(*resource_.schema));
    }
    return response_.write(R"({"type":")") && response_.write(type) &&
           response_.write(R"(","object":)") && response_.write(head_) &&
           response_.write(std::string_view(object.body).substr(1)) && response_.write("}\n");
  }

  bool send_frame(
      std::string_view type,
      std::string_view api_version,
      std::string_view kind,
      std::string_view bytes) {
    return response_.write(proto::frame_head(type, api_version, kind, bytes.size())) &&
           response_.write(bytes) && response_.write(proto::envelope_tail());
  }

  bool send_bookmark(std::string_view annotations) {
    last_bookmark_ = told_;
    const std::string object = fmt::format(
        R"("metadata":{{"resourceVersion":"{}"{}}},{}}})",
        told_,
        annotations,
        resource_.bookmark_rest);
    if (encoding_ == Encoding::AsProtobuf) {
      const std::string bytes = proto::encoded(*resource_.schema, "{" + object);
      return send_frame("BOOKMARK", resource_.api_version(), resource_.kind, bytes);
    }
    return response_.write(fmt::format(R"({{"type":"BOOKMARK","object":{}{}}})", head_, object)) &&
           response_.write("\n");
  }

  void send_error(const Status& status) {
    const std::string json = status.to_json().dump();
    if (encoding_ == Encoding::AsProtobuf) {
      (void)send_frame("ERROR", "v1", "Status", proto::encoded(proto::kStatus, json));
    } else {
      (void)response_.write(fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", json));
    }
    (void)response_.end();  // the stream ends in any case
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
               flush();
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
      case FaultKind::MalformedProtobuf:
        return response_.write(broken_frame(fault.variant)) && response_.flush();
      default:
        return true;
    }
  }

  // A frame longer than any client takes, one that is no message, or one whose object is none.
  std::string broken_frame(std::string_view variant) const {
    if (variant == "length") {
      return std::string(4, '\xff') + "a frame of four gigabytes";
    }
    if (variant == "garbage") {
      return std::string("\0\0\0\4", 4) + std::string(4, '\xff');
    }
    const std::string object(8, '\xff');
    return proto::frame_head("MODIFIED", resource_.api_version(), resource_.kind, object.size())
        .append(object)
        .append(proto::envelope_tail());
  }

  // Waits for the next thing to do. False: the stream is over.
  bool rest() {
    context_.stats.watch_told(id_, told_, sent_ns_);
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
      if (!send_changes() || !send_bookmark("") || !flush()) {
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
  const Encoding encoding_;
  const std::string head_;  // of every object in JSON
  Response& response_;
  const Clock::time_point deadline_;
  Clock::time_point next_bookmark_;
  WakeFd bell_;
  std::uint64_t id_ = 0;
  std::uint64_t told_ = 0;  // every change up to here was sent or does not match
  std::uint64_t last_bookmark_ = 0;
  std::int64_t sent_ns_ = 0;
  bool running_ = false;  // the version to start from has been accepted
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
  Watch(context, target, std::move(*options), std::move(*selector), request, response).run();
  return {};
}

}  // namespace shunt::test_api
