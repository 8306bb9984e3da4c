#include "test/apiserver/load_api.h"

#include "test/apiserver/endpoint_group.h"
#include "test/apiserver/endpoint_text.h"
#include "test/apiserver/json_text.h"
#include "test/apiserver/monotonic.h"

namespace shunt::test_api {
namespace {

void generate(Context context, Generator& generator, const Request& request, Response& response) {
  const Json json = Json::parse(request.body, nullptr, false);
  auto spec = parse_load_spec(json);
  if (!spec) {
    send_status(context, request, response, bad_request(spec.error().what));
    return;
  }
  const auto started = generator.start(std::move(*spec));
  if (!started) {
    Status busy = generic(409);
    busy.message = started.error().what;
    send_status(context, request, response, busy);
    return;
  }
  if (request.query_flag("wait")) {
    generator.wait_for_objects();
  }
  send_json(request, response, 202, generator.progress().dump());
}

// Changes the readiness of one endpoint and tells when its watchers were handed the event.
void flip(Context context, const Request& request, Response& response) {
  constexpr std::chrono::milliseconds kPatience{1000};
  const Json json = Json::parse(request.body, nullptr, false);
  const std::string key = object_key(text_at(json, "namespace"), text_at(json, "name"));
  const std::size_t table = resource_of_kind("EndpointSlice")->index;
  const ObjectPtr slice = context.store.find(table, key);
  if (!slice) {
    send_status(
        context,
        request,
        response,
        not_found(*resource_of_kind("EndpointSlice")->resource, text_at(json, "name")));
    return;
  }
  const std::size_t index = json.value("index", std::size_t{0});
  const auto endpoints = elements(member(slice->body, "endpoints").value_or(""));
  if (index >= endpoints.size()) {
    send_status(context, request, response, bad_request("the slice has no such endpoint"));
    return;
  }
  EndpointConditions conditions = conditions_of(endpoints[index]);
  conditions.ready = json.value("ready", !conditions.ready);
  conditions.serving = conditions.ready;
  const auto text = with_endpoint_conditions(slice->body, index, conditions);
  const bool written = text && write_slice(context.store, key, *text, unix_now());
  const std::int64_t stored = monotonic_ns();
  const ObjectPtr now = context.store.find(table, key);
  const auto told = context.stats.wait_told(table, now ? now->version : 0, kPatience);
  Json out = Json::object();
  out["written"] = written;
  out["ready"] = conditions.ready;
  out["resourceVersion"] = std::to_string(now ? now->version : 0);
  out["stored_ns"] = stored;
  out["sent_ns"] = told.watches == 0 ? stored : told.sent_ns;
  out["watches"] = told.watches;
  send_json(request, response, 200, out.dump());
}

}  // namespace

bool handle_load(
    Context context, Generator& generator, const Request& request, Response& response) {
  if (request.path == "/_test/generate" && request.method == "POST") {
    generate(context, generator, request, response);
  } else if (request.path == "/_test/generate" && request.method == "GET") {
    send_json(request, response, 200, generator.progress().dump());
  } else if (request.path == "/_test/generate" && request.method == "DELETE") {
    generator.stop();
    send_json(request, response, 200, generator.progress().dump());
  } else if (request.path == "/_test/flip" && request.method == "POST") {
    flip(context, request, response);
  } else {
    return false;
  }
  return true;
}

}  // namespace shunt::test_api
