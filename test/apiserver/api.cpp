#include "test/apiserver/api.h"

#include "test/apiserver/monotonic.h"
#include "test/apiserver/protobuf.h"

namespace shunt::test_api {
namespace {

std::string_view verb_of(const Request& request, const Target& target) {
  if (request.method == "GET") {
    if (request.query_flag("watch")) {
      return "watch";
    }
    return target.name.empty() ? "list" : "get";
  }
  if (request.method == "POST") {
    return "create";
  }
  if (request.method == "PUT") {
    return "update";
  }
  if (request.method == "PATCH") {
    return "patch";
  }
  return request.method == "DELETE" ? "delete" : "unknown";
}

std::optional<Encoding> negotiated(Context context, const Request& request, bool has_schema) {
  return negotiate(request.header("accept"), has_schema && context.options.protobuf);
}

void send_protobuf(
    Response& response,
    int code,
    std::map<std::string, std::string> headers,
    std::string_view api_version,
    std::string_view kind,
    std::string_view bytes) {
  headers["Content-Type"] = kProtobufType;
  response.send(code, std::move(headers), proto::enveloped(api_version, kind, bytes));
}

// Health and version, which a client may ask before anything else.
bool handle_extras(const Request& request, Response& response) {
  if (request.path == "/healthz" || request.path == "/livez" || request.path == "/readyz") {
    response.send(200, standard_headers("text/plain; charset=utf-8"), "ok");
    return true;
  }
  if (request.path == "/version") {
    send_json(
        request,
        response,
        200,
        R"({"major":"1","minor":"36","gitVersion":"v1.36.0-test","platform":"linux/amd64"})");
    return true;
  }
  return false;
}

// Applies faults that come before an answer. True: the fault was the answer.
bool strike(
    Context context,
    const Request& request,
    const Target& target,
    std::string_view verb,
    Response& response) {
  for (const FaultPtr& fault : context.faults.take(target.plural, verb)) {
    switch (fault->kind) {
      case FaultKind::Stall:
        if (!fault->before_headers) {
          response.begin(200, standard_headers("application/json"));
          (void)response.flush();  // sit_out sees a client that left
        }
        if (!sit_out(context, response, target.table.index, *fault)) {
          return true;
        }
        break;
      case FaultKind::Delay:
        (void)response.wait(-1, fault->delay_ms);  // a client that left is seen at the next write
        break;
      case FaultKind::Cut:
        response.shape.cut_after = fault->bytes;
        response.shape.reset = fault->reset;
        break;
      case FaultKind::Slow:
        response.shape.bytes_per_write = fault->bytes;
        response.shape.write_delay_ms = fault->delay_ms;
        break;
      case FaultKind::WrongContent:
        response.send(
            200,
            {{"Content-Type", "text/html"}},
            fault->text.empty() ? "<html><body>Welcome to the proxy</body></html>" : fault->text);
        return true;
      case FaultKind::Status: {
        Status status = generic(fault->code);
        if (!fault->text.empty()) {
          status.message = fault->text;
        }
        status.retry_after_seconds = fault->retry_after;
        send_status(context, request, response, status);
        return true;
      }
      case FaultKind::ErrorEvent:
      case FaultKind::MalformedJson:
      case FaultKind::MalformedProtobuf:
      case FaultKind::Refuse:
        break;  // not taken here
    }
  }
  return false;
}

Answer<> route(
    Context context,
    const Request& request,
    const Target& target,
    std::string_view verb,
    Response& response) {
  if (target.table.resource == nullptr) {
    return refuse(path_not_found());
  }
  if (!negotiated(context, request, target.table.resource->schema != nullptr)) {
    return refuse(not_acceptable());
  }
  if (verb == "watch") {
    return handle_watch(context, target, request, response);
  }
  if (verb == "list") {
    return handle_list(context, target, request, response);
  }
  if (verb != "get") {
    return handle_write(context, target, request, response);
  }
  const ObjectPtr object =
      context.store.find(target.table.index, object_key(target.ns, target.name));
  if (!object) {
    return refuse(not_found(*target.table.resource, target.name));
  }
  send_object(context, request, response, 200, *target.table.resource, *object);
  return {};
}

}  // namespace

Encoding encoding_for(Context context, const Request& request, const Resource& resource) {
  return negotiated(context, request, resource.schema != nullptr).value_or(Encoding::AsJson);
}

bool wants_pretty(const Request& request) {
  const std::string pretty = request.query_value("pretty");
  if (!pretty.empty()) {
    return pretty == "true" || pretty == "1";
  }
  const std::string agent = request.header("user-agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

void send_json(const Request& request, Response& response, int code, std::string_view compact) {
  std::string body;
  if (wants_pretty(request)) {
    Indenter().feed(compact, body);
  } else {
    body.assign(compact);
    body += '\n';
  }
  response.send(code, standard_headers("application/json"), body);
}

void send_object(
    Context context,
    const Request& request,
    Response& response,
    int code,
    const Resource& resource,
    const Object& object) {
  if (encoding_for(context, request, resource) == Encoding::AsJson) {
    send_json(request, response, code, standalone(resource, object));
    return;
  }
  send_protobuf(
      response,
      code,
      standard_headers(kProtobufType),
      resource.api_version(),
      resource.kind,
      object.protobuf(*resource.schema));
}

void send_status(
    Context context, const Request& request, Response& response, const Status& status) {
  if (response.started()) {  // a stall has already promised 200: all we can do is to hang up
    response.drop();
    return;
  }
  auto headers = standard_headers(kJsonType);
  if (status.code == 401) {  // refused before priority and fairness has a say
    headers.erase("X-Kubernetes-Pf-Flowschema-Uid");
    headers.erase("X-Kubernetes-Pf-Prioritylevel-Uid");
  }
  if (status.code == 403) {
    headers.emplace("X-Content-Type-Options", "nosniff");
  }
  if (status.retry_after_seconds > 0) {
    headers.emplace("Retry-After", std::to_string(status.retry_after_seconds));
  }
  const std::string json = status.to_json().dump();
  std::string body;
  if (negotiated(context, request, true) == Encoding::AsProtobuf) {
    send_protobuf(
        response,
        status.code,
        std::move(headers),
        "v1",
        "Status",
        proto::encoded(proto::kStatus, json));
    return;
  }
  if (wants_pretty(request)) {
    Indenter().feed(json, body);
  } else {
    body = json + "\n";
  }
  response.send(status.code, std::move(headers), body);
}

void note_sent(const Request& request, Response& response) {
  if (request.trusted_port) {
    response.more_headers["X-Sent-Ns"] = std::to_string(monotonic_ns());
  }
}

bool sit_out(Context context, Response& response, std::size_t table, const Fault& fault) {
  WakeFd bell;
  context.store.subscribe(table, bell);
  bool here = true;
  while (here && !fault.lifted) {
    here = response.wait(bell.fd(), -1) != Stream::Wait::Gone;
    bell.clear();
  }
  context.store.unsubscribe(table, bell);
  return here;
}

void handle_api(Context context, const Request& request, Response& response) {
  RequestRecord record{
      request.method,
      "",
      request.target,
      "",
      request.header("user-agent"),
      request.header("accept"),
      0};
  response.on_head = [&](int code) {
    record.code = code;
    context.stats.answered(record);
  };
  const auto target = parse_target(request.path);
  const std::string_view verb = target ? verb_of(request, *target) : "";
  if (target) {
    record.verb = verb;
    record.resource = target->plural;
  }
  const auto identity = authenticate(context.options.auth, request);
  if (!identity) {
    send_status(context, request, response, identity.error());
    return;
  }
  record.user = identity->user;
  if (handle_extras(request, response)) {
    return;
  }
  if (!target) {
    send_status(context, request, response, path_not_found());
    return;
  }
  if (const auto denied = check_access(context.options.auth, *identity, verb, *target)) {
    send_status(context, request, response, *denied);
    return;
  }
  if (strike(context, request, *target, verb, response)) {
    return;
  }
  const auto answer = route(context, request, *target, verb, response);
  if (!answer) {
    send_status(context, request, response, answer.error());
  }
}

}  // namespace shunt::test_api
