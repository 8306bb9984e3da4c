#include "test/apiserver/write_api.h"

#include <fmt/format.h>

#include "test/apiserver/api.h"
#include "test/apiserver/defaults.h"
#include "test/apiserver/event_rules.h"
#include "test/apiserver/identifiers.h"
#include "test/apiserver/manifests.h"

namespace shunt::test_api {
namespace {

// Null when `object` says nothing that `current` does not: versions aside, the same bytes.
ObjectPtr unless_equal(const ObjectPtr& current, Json object, std::uint64_t next) {
  if (current) {
    object["metadata"]["resourceVersion"] = std::to_string(current->version);
    if (object.dump(-1, ' ', false, Json::error_handler_t::replace) == current->body) {
      return current;
    }
  }
  return make_object(std::move(object), next);
}

// Optimistic locking: a resourceVersion in the body must be the current one.
bool is_outdated(const ObjectPtr& current, const Json& object) {
  const std::string version = text_at(object["metadata"], "resourceVersion");
  return !version.empty() && version != std::to_string(current->version);
}

void prepare(const Resource& resource, const ObjectPtr& current, bool raw, Json& object) {
  if (!raw) {
    apply_defaults(resource, object);
  }
  // Where the version stands among the fields decides nothing, but "the same bytes" needs it fixed.
  object["metadata"].emplace("resourceVersion", "");
  stamp_identity(current, object);
  if (!raw) {
    sort_fields(resource, object);
    stamp_generation(resource, current, object);
    sort_fields(resource, object);
  }
}

// Of Events we look at all fields, since our own client writes them.
std::optional<Status> refusal(
    const Resource& resource, const ObjectPtr& current, const Json& object) {
  return resource.group == "events.k8s.io" ? refused_event(resource, current, object)
                                           : std::nullopt;
}

Status duplicate_or_missing(const Resource& resource, bool exists, const std::string& name) {
  return exists ? already_exists(resource, name) : not_found(resource, name);
}

}  // namespace

Answer<Change> put_object(Store& store, TableRef table, Json object, Put how) {
  const Resource& resource = *table.resource;
  object.erase("kind");
  object.erase("apiVersion");
  Json& metadata = object_at(object, "metadata");
  std::string name = text_at(metadata, "name");
  if (name.empty() && !text_at(metadata, "generateName").empty()) {
    name = text_at(metadata, "generateName") + random_suffix();
    metadata["name"] = name;
  }
  if (name.empty()) {
    return refuse(invalid_object(
        resource, "", "metadata.name: Required value: name or generateName is required"));
  }
  std::string ns;
  if (resource.namespaced) {
    ns = text_at(metadata, "namespace");
    if (ns.empty()) {
      ns = "default";
      metadata["namespace"] = ns;
    }
  }
  return store.change(
      table.index,
      object_key(ns, name),
      [&](const ObjectPtr& current, std::uint64_t next) -> Answer<ObjectPtr> {
        if (current ? !how.replace : !how.create) {
          return refuse(duplicate_or_missing(resource, current != nullptr, name));
        }
        if (current && !how.create && is_outdated(current, object)) {
          return refuse(conflict(resource, name));
        }
        prepare(resource, current, how.raw, object);
        if (auto refused = how.raw ? std::nullopt : refusal(resource, current, object)) {
          return refuse(std::move(*refused));
        }
        return unless_equal(current, std::move(object), next);
      });
}

Answer<Change> merge_object(
    Store& store, TableRef table, const std::string& key, const Json& patch) {
  const Resource& resource = *table.resource;
  return store.change(
      table.index, key, [&](const ObjectPtr& current, std::uint64_t next) -> Answer<ObjectPtr> {
        if (!current) {
          return refuse(not_found(resource, key.substr(key.find('/') + 1)));
        }
        if (patch.contains("metadata") && is_outdated(current, patch)) {
          return refuse(conflict(resource, current->name));
        }
        Json object = Json::parse(current->body);
        object.merge_patch(patch);
        object.erase("kind");
        object.erase("apiVersion");
        object_at(object, "metadata")["name"] = current->name;
        prepare(resource, current, false, object);
        if (auto refused = refusal(resource, current, object)) {
          return refuse(std::move(*refused));
        }
        return unless_equal(current, std::move(object), next);
      });
}

Answer<Change> delete_object(Store& store, TableRef table, const std::string& key) {
  return store.change(
      table.index, key, [&](const ObjectPtr& current, std::uint64_t) -> Answer<ObjectPtr> {
        if (!current) {
          return refuse(not_found(*table.resource, key.substr(key.find('/') + 1)));
        }
        return ObjectPtr();
      });
}

namespace {

Answer<Json> body_object(const Request& request) {
  auto documents = parse_manifests(request.body);
  if (!documents) {
    return refuse(bad_request(documents.error().what));
  }
  if (documents->size() != 1 || !documents->front().is_object()) {
    return refuse(bad_request("the body must be one object"));
  }
  return std::move(documents->front());
}

// The path decides where an object goes; a body that says otherwise is an error.
std::optional<Status> adopt_path(const Target& target, Json& object) {
  Json& metadata = object_at(object, "metadata");
  const std::string ns = text_at(metadata, "namespace");
  if (!target.ns.empty() && !ns.empty() && ns != target.ns) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  if (!target.ns.empty()) {
    metadata["namespace"] = target.ns;
  }
  const std::string name = text_at(metadata, "name");
  if (!target.name.empty() && !name.empty() && name != target.name) {
    return bad_request(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, target.name));
  }
  if (!target.name.empty()) {
    metadata["name"] = target.name;
  }
  return std::nullopt;
}

Answer<Change> put_from(Context context, const Target& target, const Request& request, Put how) {
  auto object = body_object(request);
  if (!object) {
    return refuse(object.error());
  }
  if (auto status = adopt_path(target, *object)) {
    return refuse(std::move(*status));
  }
  how.raw = request.query_flag("raw");
  return put_object(context.store, target.table, std::move(*object), how);
}

Answer<Change> patch_from(Context context, const Target& target, const Request& request) {
  const std::string type = request.header("content-type");
  if (!type.starts_with("application/merge-patch+json") &&
      !type.starts_with("application/strategic-merge-patch+json")) {
    return refuse(unsupported_media_type());
  }
  const auto patch = body_object(request);
  if (!patch) {
    return refuse(patch.error());
  }
  return merge_object(context.store, target.table, object_key(target.ns, target.name), *patch);
}

Status deletion_status(const Resource& resource, const Object& object) {
  Status status;
  status.code = 200;
  status.details = Json::object();
  status.details["name"] = object.name;
  if (!resource.group.empty()) {
    status.details["group"] = resource.group;
  }
  status.details["kind"] = resource.plural;
  status.details["uid"] = object.uid;
  return status;
}

}  // namespace

Answer<> handle_write(
    Context context, const Target& target, const Request& request, Response& response) {
  const Resource& resource = *target.table.resource;
  const bool scoped = !resource.namespaced || !target.ns.empty();
  Answer<Change> change = refuse(method_not_allowed());
  if (request.method == "POST" && target.name.empty() && scoped) {
    change = put_from(context, target, request, Put{true, false, false});
  } else if (request.method == "PUT" && !target.name.empty() && scoped) {
    const bool upsert = request.query_flag("upsert");
    change = put_from(context, target, request, Put{upsert, true, false});
  } else if (request.method == "PATCH" && !target.name.empty() && scoped) {
    change = patch_from(context, target, request);
  } else if (request.method == "DELETE" && !target.name.empty() && scoped) {
    change = delete_object(context.store, target.table, object_key(target.ns, target.name));
  }
  if (!change) {
    return refuse(change.error());
  }
  note_sent(request, response);
  if (!change->after) {
    send_status(context, request, response, deletion_status(resource, *change->before));
  } else {
    const int code = change->before ? 200 : 201;
    send_object(context, request, response, code, resource, *change->after);
  }
  return {};
}

}  // namespace shunt::test_api
