#include "apiserver/http_stream.h"

#include <cerrno>
#include <charconv>

#include "apiserver/connector_impl.h"
#include "apiserver/inflate.h"

namespace shunt::apiserver {
namespace {

// Only a number of seconds counts; the other form of Retry-After, a date, is not used by servers.
std::optional<std::chrono::seconds> retry_after(const HttpHead& head) {
  const std::string_view text = head.header("retry-after");
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return std::chrono::seconds(seconds);
}

std::string_view method_name(Method method) {
  switch (method) {
    case Method::Get:
      return "GET";
    case Method::Post:
      return "POST";
    case Method::Patch:
      return "PATCH";
  }
  return "";
}

bool may_repeat(const Request& request) {
  return request.method == Method::Get || request.repeatable;
}

bool broke(const Exchange& exchange) {
  return !exchange.head && !exchange.end &&
         (exchange.end.error().sys_errno == ECONNRESET || exchange.end.error().sys_errno == EPIPE);
}

// The body of one answer on its way to the sink, compressed or not. What is wrong with the coding
// stops the parser and is told at the end.
class Body {
 public:
  Body(bool gzip_asked, const AnswerSink& sink) : gzip_asked_(gzip_asked), sink_(&sink) {}

  bool begin(const HttpHead& head) {
    const std::string_view coding = head.header("content-encoding");
    if (coding == "gzip" && gzip_asked_) {
      inflater_.emplace();
    } else if (!coding.empty() && coding != "identity") {
      problem_ =
          fail(Errc::Unsupported, "the server coded its answer in a way that was not asked for");
    }
    return problem_.has_value();
  }
  bool take(std::string_view piece) {
    if (!inflater_) {
      return sink_->on_body(piece);
    }
    const auto fed = inflater_->feed(piece, sink_->on_body);
    if (!fed) {
      problem_ = tl::unexpected(fed.error());
    }
    return fed && *fed;
  }
  // All bytes of the body were taken.
  void end() {
    if (problem_ && inflater_ && !inflater_->complete()) {
      problem_ = fail(Errc::Invalid, "the gzip body of the answer ends too early");
    }
  }
  const Result<>& problem() const { return problem_; }

 private:
  bool gzip_asked_;
  const AnswerSink* sink_;
  std::optional<Inflater> inflater_;
  Result<> problem_;
};

}  // namespace

HttpStream::HttpStream(Connector& connector, HttpOptions options)
    : connector_(connector.impl()), options_(options) {}

Exchange HttpStream::send(const Request& request, const AnswerSink& sink) {
  const auto identity = connector_.credentials().current(options_.stop_fd);
  if (!identity) {
    Error error = identity.error();
    // A plugin's timeout or a missing file is no word from the server, and is not treated as one.
    error.sys_errno = error.sys_errno == ECANCELED ? ECANCELED : 0;
    return {std::nullopt, fail("credentials", std::move(error))};
  }
  if (!connector_.on_request) {
    return carry_out(request, **identity, sink);
  }
  const auto started = Clock::now();
  const auto tell = [&](std::string_view status) {
    connector_.on_request(
        {.method = method_name(request.method),
         .host = connector_.server.host_header(),
         .status = status,
         .duration = Clock::now() - started});
  };
  Exchange out = carry_out(
      request,
      **identity,
      {.on_head =
           [&](const AnswerHead& head) {
             tell(std::to_string(head.status));
             return sink.on_head(head);
           },
       .on_body = sink.on_body});
  if (!out.head && !out.end && out.end.error().sys_errno != ECANCELED) {
    tell("<error>");
  }
  return out;
}

Exchange HttpStream::carry_out(
    const Request& request, const Identity& identity, const AnswerSink& sink) {
  const bool gzip = request.may_be_compressed && connector_.compression;
  const std::string text = request_text(request, gzip, identity);
  if (auto kept = take_kept(identity)) {
    Exchange out = exchange(std::move(*kept), text, gzip, sink);
    // Most likely the server closed it while it was idle, but nobody can know.
    if (!broke(out) || !may_repeat(request)) {
      return out;
    }
  }
  auto connection = connector_.connect(identity, options_.limits, options_.stop_fd);
  if (!connection) {
    return {std::nullopt, tl::unexpected(connection.error())};
  }
  return exchange({std::move(*connection), identity.generation}, text, gzip, sink);
}

std::optional<HttpStream::Kept> HttpStream::take_kept(const Identity& identity) {
  auto out = std::exchange(kept_, std::nullopt);
  if (out && (out->generation != identity.generation || out->connection.stale())) {
    out.reset();
  }
  return out;
}

Exchange HttpStream::exchange(
    Kept kept, const std::string& text, bool gzip, const AnswerSink& sink) {
  Exchange out;
  Body body(gzip, sink);
  HttpResponseParser parser(
      [&](const HttpHead& head) {
        out.head =
            AnswerHead{head.status, retry_after(head), std::string(head.header("content-type"))};
        return body.begin(head) && sink.on_head(*out.head);
      },
      [&](std::string_view piece) { return body.take(piece); });
  const auto deadline = [&] { return Deadline::in(options_.stall_timeout, options_.stop_fd); };
  out.end = kept.connection.write(text, deadline());
  while (out.end && !parser.complete() && !parser.stopped()) {
    // A server that never pauses would otherwise keep us from noticing.
    if (stop_asked(options_.stop_fd)) {
      out.end = fail(Errc::Again, "stopped", ECANCELED);
      break;
    }
    const auto n = kept.connection.read(buffer_, deadline());
    if (!n) {
      out.end = tl::unexpected(n.error());
    } else if (*n == 0) {
      out.end = parser.finish();
      break;
    } else {
      out.end = parser.feed({buffer_.data(), *n});
    }
  }
  if (out.end && parser.complete() && !parser.stopped()) {
    body.end();
  }
  if (!body.problem()) {
    out.end = body.problem();
  }
  if (out.head && out.head->status == 401) {
    connector_.credentials().refused(kept.generation);
  } else if (out.end && parser.reusable()) {
    kept_ = std::move(kept);
  }
  return out;
}

std::string HttpStream::request_text(
    const Request& request, bool gzip, const Identity& identity) const {
  std::string out(method_name(request.method));
  out.append(" ").append(connector_.server.base_path).append(request.target);
  out.append(" HTTP/1.1\r\n");
  const auto add = [&out](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  add("Host", connector_.server.host_header());
  add("User-Agent", connector_.user_agent);
  add("Accept", request.accept);
  add("Accept-Encoding", gzip ? "gzip" : "identity");
  for (const auto& [name, value] : identity.headers) {
    add(name, value);
  }
  if (request.method != Method::Get) {
    add("Content-Type", request.content_type);
    add("Content-Length", std::to_string(request.body.size()));
  }
  return out.append("\r\n").append(request.body);
}

}  // namespace shunt::apiserver
