// A ListWatch of Services over a scripted server: no socket, no thread, no clock. What is asked,
// waited for and delivered becomes one list of lines.
#pragma once

#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/list_watch.h"

namespace shunt::apiserver::testing {

using kube::Service;
using Lines = std::vector<std::string>;

inline std::string parameter(const std::string& target, const std::string& name) {
  const auto query = target.find('?');
  const auto at = target.find("&" + name + "=", query);
  const auto begin = at != std::string::npos ? at + name.size() + 2 : std::string::npos;
  if (begin == std::string::npos) {
    return "-";
  }
  return target.substr(begin, target.find('&', begin) - begin);
}

// "list rv=0 limit=500", "watchlist rv=-", "watch rv=12": what the rules are about.
inline std::string request_line(const std::string& target) {
  if (target.find("watch=true") == std::string::npos) {
    std::string out = "list rv=" + parameter(target, "resourceVersion");
    if (parameter(target, "limit") != "-") {
      out += " limit=" + parameter(target, "limit");
    }
    return parameter(target, "continue") == "-"
               ? out
               : out + " continue=" + parameter(target, "continue");
  }
  const bool initial = parameter(target, "sendInitialEvents") == "true";
  return (initial ? "watchlist rv=" : "watch rv=") + parameter(target, "resourceVersion");
}

struct Answer {
  std::optional<int> status = 200;
  Lines pieces;
  Result<> end;
  Millis lasts{5000};
  std::optional<std::chrono::seconds> retry_after = std::nullopt;
  std::string content_type = "application/json";
};

inline Answer ok(Lines pieces, Millis lasts = Millis(5000)) {
  return {.status = 200, .pieces = std::move(pieces), .end = {}, .lasts = lasts};
}
inline Answer cut(Lines pieces, int error, Millis lasts = Millis(5000)) {
  Answer out = ok(std::move(pieces), lasts);
  out.end = fail(Errc::Again, "cut", error);
  return out;
}
inline Answer no_answer(int error) {
  return {.status = std::nullopt, .pieces = {}, .end = fail(Errc::Again, "no answer", error)};
}
inline Answer refused(
    int status, std::string body, std::optional<std::chrono::seconds> after = {}) {
  return {
      .status = status,
      .pieces = {std::move(body)},
      .end = {},
      .lasts = Millis(1),
      .retry_after = after};
}

// A server with a script, a clock that moves only when somebody waits, and the reader's side of the
// mailbox, all writing to one list of what happened. The end of the script stops the machine.
class World final : public Transport, public Waiter {
 public:
  World() : outbox(wake_) {}

  Exchange send(const Request& request, const AnswerSink& sink) override {
    const std::string& target = request.target;
    note_mail();
    lines.push_back(request_line(target));
    requests.push_back(request);
    if (script.empty()) {
      stopped_ = true;
      return {std::nullopt, fail(Errc::Again, "stopped", ECANCELED)};
    }
    const Answer answer = script.front();
    script.pop_front();
    Exchange out{std::nullopt, answer.end};
    bool go_on = true;
    if (answer.status) {
      out.head = AnswerHead{*answer.status, answer.retry_after, answer.content_type};
      go_on = sink.on_head(*out.head);
    }
    for (const std::string& piece : answer.pieces) {
      if (!go_on) {
        out.end = {};
        break;
      }
      go_on = sink.on_body(piece);
      note_mail();
    }
    now_ += answer.lasts;
    return out;
  }

  Clock::time_point now() const override { return now_; }
  bool stopping() const override { return stopped_; }
  bool wait(Millis delay) override {
    note_mail();
    if (stopped_) {
      return false;
    }
    lines.push_back("wait " + std::to_string(delay.count()));
    now_ += delay;
    return true;
  }

  // The objects of a list are one line, at its end, as its reader must take them; those of a list
  // that was left unfinished are forgotten here.
  void note_mail() {
    const auto mail = outbox.drain();
    Lines live;
    for (const auto& [key, slot] : mail.changes) {
      const std::string version =
          slot.value ? "@" + (*slot.value)->meta.resource_version : std::string();
      if (slot.list == complete_) {
        std::string line = slot.value ? "put " : "del ";
        live.push_back(line.append(key).append(version));
      } else if (slot.value) {
        listed_[slot.list][key] = version;
      } else {
        listed_[slot.list].erase(key);
      }
    }
    lines.insert(lines.end(), live.begin(), live.end());
    if (mail.listed) {
      complete_ = *mail.listed;
      std::string line = "replace";
      for (const auto& [key, version] : listed_[complete_]) {
        line.append(" ").append(key).append(version);
      }
      lines.push_back(line);
    }
  }

  Lines lines;
  std::vector<Request> requests;
  std::deque<Answer> script;

 private:
  WakeFd wake_;
  Clock::time_point now_{std::chrono::hours(1)};
  bool stopped_ = false;
  std::uint32_t complete_ = 0;  // the last list that ended
  std::map<std::uint32_t, std::map<std::string, std::string>> listed_;

 public:
  ListWatch<Service>::Outbox outbox;
};

struct Outcome {
  Lines lines;
  std::vector<Request> requests;
  ReflectorStatus status;
};

inline Outcome play(std::deque<Answer> script, const ReflectorOptions& options = {}) {
  World world;
  world.script = std::move(script);
  ListWatch<Service> machine(
      options, world, world, [] { return 0.0; }, world.outbox);
  machine.run();
  world.note_mail();
  return {world.lines, world.requests, machine.status()};
}
inline Lines lines_of(std::deque<Answer> script) { return play(std::move(script)).lines; }
inline Lines classic(std::deque<Answer> script, std::int64_t page_limit = 500) {
  ReflectorOptions options;
  options.streaming_lists = false;
  options.page_limit = page_limit;
  return play(std::move(script), options).lines;
}

}  // namespace shunt::apiserver::testing
