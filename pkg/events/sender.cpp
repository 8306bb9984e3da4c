#include "events/sender.h"

#include <utility>

#include "apiserver/api_error.h"
#include "apiserver/watch_request.h"
#include "base/log.h"

namespace shunt::events {
namespace {

using apiserver::AnswerHead;
using log::kv;

// Of an answer only an error is read, and of that the beginning.
constexpr std::size_t kMaxAnswer = std::size_t{16} << 10;

// The server, or what stands before it, asks for patience.
bool is_temporary(int status) { return status == 429 || status == 503 || status == 504; }

}  // namespace

Sender::Sender(
    SenderOptions options,
    apiserver::Transport& transport,
    apiserver::Waiter& waiter,
    Random random)
    : options_(std::move(options)),
      transport_(&transport),
      waiter_(&waiter),
      random_(std::move(random)),
      rate_(options_.rate, waiter.now()) {}

Outcome Sender::send(const Event& event) {
  bool patch = event.series.has_value();
  for (int tries = 0; tries < options_.tries;) {
    if (!wait_for_turn()) {
      return Outcome::Stopped;
    }
    switch (attempt(event, patch)) {
      case Verdict::Sent:
        return Outcome::Sent;
      case Verdict::Refused:
        return Outcome::Refused;
      case Verdict::Missing:
        patch = false;  // the Event has expired, or never arrived: it comes as a series at once
        continue;
      case Verdict::Unreachable:
        break;
    }
    ++tries;
    const auto extra = static_cast<double>(options_.retry_delay.count()) * 0.25 * random_();
    if (tries < options_.tries &&
        !waiter_->wait(options_.retry_delay + Millis(static_cast<Millis::rep>(extra)))) {
      return Outcome::Stopped;
    }
  }
  log::warn(
      "event given up, the API server cannot be reached",
      {kv("reason", event.notice.reason), kv("object", kube::to_string(event.notice.object))});
  return Outcome::GivenUp;
}

bool Sender::wait_for_turn() {
  while (!rate_.take(waiter_->now())) {
    if (!waiter_->wait(rate_.until_next(waiter_->now()))) {
      return false;
    }
  }
  return !waiter_->stopping();
}

apiserver::Request Sender::request_for(const Event& event, bool patch) const {
  apiserver::Request request;
  request.target = "/apis/events.k8s.io/v1/namespaces/" +
                   apiserver::percent_encode(event_namespace(event.notice)) + "/events";
  request.accept = "application/json";
  request.repeatable = true;  // the name is ours: a second POST is a 409, a second PATCH no change
  if (patch) {
    request.method = apiserver::Method::Patch;
    request.target += "/" + apiserver::percent_encode(event.name);
    request.content_type = "application/strategic-merge-patch+json";
    request.body = series_patch(*event.series);
  } else {
    request.method = apiserver::Method::Post;
    request.content_type = "application/json";
    request.body = create_body(event, options_.reporter);
  }
  return request;
}

Sender::Verdict Sender::attempt(const Event& event, bool patch) {
  int status = 0;
  std::string body;
  const auto exchange = transport_->send(
      request_for(event, patch),
      {.on_head =
           [&](const AnswerHead& head) {
             status = head.status;
             return true;
           },
       .on_body =
           [&](std::string_view piece) {
             body.append(piece.substr(0, kMaxAnswer - body.size()));
             return true;  // to its end, so that the connection can be used again
           }});
  if (status == 0) {
    log::debug("event not sent", {kv("error", exchange.end ? "" : exchange.end.error().what)});
    return Verdict::Unreachable;
  }
  return judge(status, body, patch);
}

Sender::Verdict Sender::judge(int status, const std::string& body, bool patch) {
  if (status >= 200 && status < 300) {
    return Verdict::Sent;
  }
  if (status == 409 && !patch) {  // an earlier try of ours arrived after all
    return Verdict::Sent;
  }
  if (status == 404 && patch) {
    return Verdict::Missing;
  }
  if (is_temporary(status)) {
    return Verdict::Unreachable;
  }
  const auto error = apiserver::classify_answer(status, body, std::nullopt);
  if (status != 403) {
    log::warn("event refused by the API server", {kv("error", error.what)});
  } else if (!std::exchange(forbidden_said_, true)) {
    log::warn(
        "events are forbidden, is the role lacking create and patch of events.events.k8s.io? "
        "said once",
        {kv("error", error.what)});
  }
  return Verdict::Refused;
}

}  // namespace shunt::events
