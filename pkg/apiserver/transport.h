// The seams under the list/watch machine: one request to the API server, and time. The real ones
// are in http_stream and reflector.cpp; tests script their own and need no socket and no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.h"
#include "base/result.h"

namespace shunt::apiserver {

enum class Method : std::uint8_t { Get, Post, Patch };

struct Request {
  std::string target;  // "/api/v1/..."
  std::string accept;
  // The answer may be large and ends by itself: whoever carries it may have it compressed on the
  // way. What the sink gets is plain.
  bool may_be_compressed = false;
  Method method = Method::Get;
  std::string content_type = {};  // of the body; Post and Patch
  std::string body = {};
  // Carrying it out twice is as good as once. Otherwise a request whose outcome is unknown (it was
  // sent, and the connection broke) is not sent again; a Get always may be.
  bool repeatable = false;
};

struct AnswerHead {
  int status = 0;
  std::optional<std::chrono::seconds> retry_after;
  std::string content_type;
};

// Called while the answer arrives, on the thread of the request. Returning false ends the request,
// which is then in good order.
struct AnswerSink {
  std::function<bool(const AnswerHead&)> on_head;
  std::function<bool(std::string_view)> on_body;
};

struct Exchange {
  std::optional<AnswerHead> head;  // nothing: no answer began
  // How it ended. sys_errno: ECONNREFUSED when nobody listens; ECONNRESET when the connection broke
  // or ended too early; ETIMEDOUT when nothing came for too long; ECANCELED when stop was asked.
  Result<> end;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // With credentials. Answers nothing else but what came: redirects and errors are answers, too.
  virtual Exchange send(const Request& request, const AnswerSink& sink) = 0;
};

class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual Clock::time_point now() const = 0;
  virtual bool stopping() const = 0;
  virtual bool wait(Millis delay) = 0;  // false: stop was asked
};

}  // namespace shunt::apiserver
