#include "test/apiserver/admin_api.h"

#include <charconv>

#include "test/apiserver/manifests.h"
#include "test/apiserver/write_api.h"

namespace shunt::test_api {
namespace {

Result<std::size_t> delete_objects(Store& store, const std::vector<Json>& objects) {
  std::size_t count = 0;
  for (const Json& object : objects) {
    const auto table = resource_of_kind(text_at(object, "kind"));
    if (!table) {
      return fail(Errc::Invalid, "unknown kind \"" + text_at(object, "kind") + "\"");
    }
    // {kind, namespace, name}, or a whole manifest.
    const Json& metadata = object.contains("metadata") ? object["metadata"] : object;
    std::string ns = table->resource->namespaced ? text_at(metadata, "namespace") : "";
    if (table->resource->namespaced && ns.empty()) {
      ns = "default";
    }
    const auto key = object_key(ns, text_at(metadata, "name"));
    count += delete_object(store, *table, key) ? 1U : 0U;
  }
  return count;
}

void answer_count(
    Context context,
    const Request& request,
    Response& response,
    const char* what,
    const Result<std::size_t>& count) {
  if (!count) {
    send_status(context, request, response, bad_request(count.error().what));
    return;
  }
  Json out = Json::object();
  out[what] = *count;
  note_sent(request, response);
  out["resourceVersion"] = std::to_string(context.store.version());
  send_json(request, response, 200, out.dump());
}

void answer_ok(Context context, const Request& request, Response& response) {
  Json out = Json::object();
  out["resourceVersion"] = std::to_string(context.store.version());
  send_json(request, response, 200, out.dump());
}

void put_faults(Context context, const Request& request, Response& response) {
  const Json faults = Json::parse(request.body, nullptr, false);
  const auto replaced = faults.is_discarded() ? fail(Errc::Invalid, "the body is not JSON")
                                              : context.faults.replace(faults);
  if (!replaced) {
    send_status(context, request, response, bad_request(replaced.error().what));
    return;
  }
  send_json(request, response, 200, context.faults.describe().dump());
}

void advance(Context context, Journal& journal, const Request& request, Response& response) {
  const std::string text = request.query_value("to");
  std::uint64_t version = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), version).ec != std::errc{}) {
    send_status(context, request, response, bad_request("?to=VERSION is missing"));
    return;
  }
  context.store.advance_to(version);
  journal.write_version(version);
  answer_ok(context, request, response);
}

void answer_stats(Context context, const Request& request, Response& response) {
  Json stats = context.stats.summary();
  stats["resourceVersion"] = std::to_string(context.store.version());
  send_json(request, response, 200, stats.dump());
}

// Whether a client has been sent all that concerns it, without its having to ask for bookmarks: no
// change of the watched resource is left to send.
void answer_watches(Context context, const Request& request, Response& response) {
  Json out = Json::object();
  out["resourceVersion"] = std::to_string(context.store.version());
  out["watches"] = Json::array();
  for (const OpenWatch& watch : context.stats.watches()) {
    Json item = Json::object();
    item["id"] = watch.id;
    item["resource"] = watch.resource;
    item["userAgent"] = watch.user_agent;
    item["upToDate"] =
        watch.told && context.store.changes_after(watch.table, watch.version).changes.empty();
    out["watches"].push_back(std::move(item));
  }
  send_json(request, response, 200, out.dump());
}

}  // namespace

Result<std::size_t> apply_objects(Store& store, std::vector<Json> objects, bool raw) {
  std::size_t count = 0;
  for (Json& object : objects) {
    const std::string kind = text_at(object, "kind");
    if (kind == "Namespace") {
      continue;  // not enforced here, but part of many manifests
    }
    const auto table = resource_of_kind(kind);
    if (!table) {
      return fail(Errc::Invalid, "unknown kind \"" + kind + "\"");
    }
    const auto change = put_object(store, *table, std::move(object), Put{true, true, raw});
    if (!change) {
      return fail(Errc::Invalid, change.error().message);
    }
    ++count;
  }
  return count;
}

bool handle_admin(Context context, Journal& journal, const Request& request, Response& response) {
  const std::string& path = request.path;
  const std::string& method = request.method;
  const auto is = [&](std::string_view wanted_method, std::string_view wanted_path) {
    return method == wanted_method && path == wanted_path;
  };
  if (!path.starts_with("/_test/")) {
    return false;
  }
  if (is("POST", "/_test/apply") || is("POST", "/_test/delete")) {
    auto objects = parse_manifests(request.body);
    const bool apply = path.ends_with("apply");
    const Result<std::size_t> count =
        !objects ? tl::unexpected(objects.error())
        : apply  ? apply_objects(context.store, std::move(*objects), request.query_flag("raw"))
                 : delete_objects(context.store, *objects);
    if (request.query_flag("bookmark")) {
      context.store.announce();
    }
    answer_count(context, request, response, apply ? "applied" : "deleted", count);
  } else if (is("PUT", "/_test/faults")) {
    put_faults(context, request, response);
  } else if (is("DELETE", "/_test/faults")) {
    context.faults.clear();
    answer_ok(context, request, response);
  } else if (is("GET", "/_test/faults")) {
    send_json(request, response, 200, context.faults.describe().dump());
  } else if (is("GET", "/_test/stats")) {
    answer_stats(context, request, response);
  } else if (is("GET", "/_test/watches")) {
    answer_watches(context, request, response);
  } else if (is("DELETE", "/_test/stats")) {
    context.stats.reset();
    answer_ok(context, request, response);
  } else if (is("GET", "/_test/requests")) {
    send_json(request, response, 200, context.stats.requests().dump());
  } else if (is("POST", "/_test/forget")) {
    context.store.forget_log();
    answer_ok(context, request, response);
  } else if (is("POST", "/_test/advance")) {
    advance(context, journal, request, response);
  } else {
    send_status(context, request, response, path_not_found());
  }
  return true;
}

}  // namespace shunt::test_api
