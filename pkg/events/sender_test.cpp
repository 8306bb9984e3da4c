// One Event on its way, over a scripted server: no socket and no clock.
#include "events/sender.h"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <deque>

namespace shunt::events {
namespace {

using Lines = std::vector<std::string>;

// Answers with a script of HTTP codes; 0 is no answer. Its end stops whoever waits.
class World final : public apiserver::Transport, public apiserver::Waiter {
 public:
  apiserver::Exchange send(
      const apiserver::Request& request, const apiserver::AnswerSink& sink) override {
    lines.push_back(
        (request.method == apiserver::Method::Post ? "POST " : "PATCH ") + request.target);
    requests.push_back(request);
    const int code = script.empty() ? 0 : script.front();
    if (!script.empty()) {
      script.pop_front();
    }
    if (code == 0) {
      return {std::nullopt, fail(Errc::Again, "refused", ECONNREFUSED)};
    }
    const apiserver::AnswerHead head{code, std::nullopt, "application/json"};
    if (sink.on_head(head)) {
      (void)sink.on_body(R"({"kind":"Status","message":"no"})");
    }
    return {head, {}};
  }
  Clock::time_point now() const override { return now_; }
  bool stopping() const override { return stop_at_wait == 0; }
  bool wait(Millis delay) override {
    lines.push_back("wait " + std::to_string(delay.count()));
    now_ += delay;
    return stop_at_wait < 0 || --stop_at_wait > 0;
  }

  std::deque<int> script;
  Lines lines;
  std::vector<apiserver::Request> requests;
  int stop_at_wait = -1;

 private:
  Clock::time_point now_{std::chrono::hours(1)};
};

Event event(std::optional<Series> series = std::nullopt) {
  return {
      "web.1",
      {.kind = kube::Notice::Kind::Service,
       .object = {"shop", "web"},
       .uid = "",
       .reason = "SetAside",
       .action = "Plan",
       .note = "n"},
      WallTime(std::chrono::seconds(1)),
      series};
}
Event series() { return event(Series{2, WallTime(std::chrono::seconds(2))}); }

struct Played {
  Outcome outcome;
  Lines lines;
};
Played play(std::deque<int> script, const Event& one = event(), int stop_at_wait = -1) {
  World world;
  world.script = std::move(script);
  world.stop_at_wait = stop_at_wait;
  Sender sender({}, world, world, [] { return 0.0; });
  const Outcome outcome = sender.send(one);
  return {outcome, world.lines};
}

const std::string kPath = "/apis/events.k8s.io/v1/namespaces/shop/events";
const std::string kPost = "POST " + kPath;
const std::string kPatch = "PATCH " + kPath + "/web.1";

TEST_CASE("an Event is created, a series is patched") {
  World world;
  world.script = {201, 200};
  Sender sender({}, world, world, [] { return 0.0; });
  CHECK(sender.send(event()) == Outcome::Sent);
  CHECK(sender.send(series()) == Outcome::Sent);
  CHECK(world.lines == Lines{kPost, kPatch});
  CHECK(world.requests[0].content_type == "application/json");
  CHECK(world.requests[0].body == create_body(event(), Reporter{}));
  CHECK(world.requests[1].content_type == "application/strategic-merge-patch+json");
  CHECK(world.requests[1].body == series_patch(*series().series));
  CHECK(world.requests[0].repeatable);
}

TEST_CASE("a series whose Event is gone is created") {
  const Played got = play({404, 201}, series());
  CHECK(got.outcome == Outcome::Sent);
  CHECK(got.lines == Lines{kPatch, kPost});
}

TEST_CASE("an Event that is there already has arrived") {
  CHECK(play({0, 409}).outcome == Outcome::Sent);
}

TEST_CASE("a server that cannot be reached is tried twelve times, ten seconds apart") {
  const Played got = play({});
  CHECK(got.outcome == Outcome::GivenUp);
  Lines wanted{kPost};
  for (int i = 1; i < 12; ++i) {
    wanted.insert(wanted.end(), {"wait 10000", kPost});
  }
  CHECK(got.lines == wanted);
  CHECK(play({0, 503, 429, 201}).outcome == Outcome::Sent);
}

TEST_CASE("a refusal is not argued with") {
  for (const int code : {400, 401, 403, 404, 422, 500}) {
    CAPTURE(code);
    const Played got = play({code, 201});
    CHECK(got.outcome == Outcome::Refused);
    CHECK(got.lines == Lines{kPost});
  }
}

TEST_CASE("stop ends the waiting") {
  const Played got = play({}, event(), 1);
  CHECK(got.outcome == Outcome::Stopped);
  CHECK(got.lines == Lines{kPost, "wait 10000"});
}

TEST_CASE("many Events are five a second after the first ten") {
  World world;
  world.script.assign(20, 201);
  Sender sender({}, world, world, [] { return 0.0; });
  const auto begun = world.now();
  for (int i = 0; i < 20; ++i) {
    REQUIRE(sender.send(event()) == Outcome::Sent);
  }
  CHECK(world.now() - begun == Millis(2000));
}

}  // namespace
}  // namespace shunt::events
