#include "kube/decode_json.h"

#include <utility>

#include "kube/json_objects.h"
#include "kube/json_reader.h"

namespace shunt::kube {
namespace {

using json::Findings;
using json::ObjectSlot;
using json::Slot;

// --- One object

// Host names of an FQDN slice are no addresses and need not be.
template <typename T>
bool minds_addresses(const T&) {
  return true;
}
bool minds_addresses(const EndpointSlice& slice) {
  return slice.address_type == "IPv4" || slice.address_type == "IPv6";
}

// A lost object has one issue, the first: the others are often its consequences.
void add_issues(
    const Findings& findings,
    bool with_remarks,
    const ObjectKey& key,
    const std::string& nameless,
    std::vector<DecodeIssue>& issues) {
  const std::string name = key.name.empty() ? nameless : to_string(key);
  if (findings.mistake) {
    issues.push_back({.object = name, .what = *findings.mistake, .object_lost = true});
  } else if (with_remarks) {
    for (const std::string& remark : findings.remarks) {
      issues.push_back({.object = name, .what = remark, .object_lost = false});
    }
  }
}

// --- Lists

// The top of a list body; items go straight into their vector and leave it again when they turn out
// to be bad.
template <typename T>
class ListBody final : public json::Record {
 public:
  void close(const Findings& findings) override {
    T& item = list.items.back();
    add_issues(
        findings,
        minds_addresses(item),
        item.meta.key,
        "items[" + std::to_string(index_) + "]",
        list.issues);
    if (findings.mistake) {
      list.items.pop_back();
    }
  }

  void clear() {
    list.items.clear();
    list.issues.clear();
  }

  Slot open(std::size_t index) {
    index_ = index;
    return Slot{ObjectSlot{&list.items.emplace_back(), json::shape_for<T>(), this}};
  }

  std::string kind;
  DecodedList<T> list;

 private:
  std::size_t index_ = 0;
};

constexpr json::Field kListMeta[] = {
    {"resourceVersion", &json::value<&ListMeta::resource_version>},
    {"continue", &json::value<&ListMeta::continue_token>},
};

template <typename T>
Slot list_metadata(void* target) {
  return json::inside<kListMeta>(&static_cast<ListBody<T>*>(target)->list.meta);
}

template <typename T>
Slot list_items(void* target) {
  return Slot{json::ListSlot{
      .target = target,
      .clear = [](void* body) { static_cast<ListBody<T>*>(body)->clear(); },
      .append = [](void* body,
                   std::size_t index) { return static_cast<ListBody<T>*>(body)->open(index); }}};
}

template <typename T>
constexpr json::Field kListBody[] = {
    {"kind", &json::value<&ListBody<T>::kind>},
    {"metadata", &list_metadata<T>},
    {"items", &list_items<T>},
};

// --- Watch events

std::optional<EventType> parse_event_type(std::string_view text) {
  static constexpr std::pair<std::string_view, EventType> kTypes[] = {
      {"ADDED", EventType::Added},
      {"MODIFIED", EventType::Modified},
      {"DELETED", EventType::Deleted},
      {"BOOKMARK", EventType::Bookmark},
      {"ERROR", EventType::Error},
  };
  for (const auto& [name, type] : kTypes) {
    if (name == text) {
      return type;
    }
  }
  return std::nullopt;
}

// The type says what the object is. The API server writes it first; when it comes later the object
// is passed over, and a second reading knows the type beforehand.
template <typename T>
class EventBody final : public json::Record {
 public:
  EventBody() = default;
  explicit EventBody(EventType known) : known_(known) {}

  Slot open_object() {
    object_seen = true;
    read_as = known_ ? known_ : parse_event_type(type);
    if (!read_as) {
      return {};
    }
    event = {};
    event.type = *read_as;
    if (*read_as == EventType::Bookmark) {
      bookmark_ = {};
      return Slot{ObjectSlot{&bookmark_, json::shape_for<json::Bookmark>(), this}};
    }
    if (*read_as == EventType::Error) {
      status_ = {};
      return Slot{ObjectSlot{&status_, json::shape_for<json::StatusBody>(), this}};
    }
    return Slot{ObjectSlot{&event.object.emplace(), json::shape_for<T>(), this}};
  }

  void close(const Findings& findings) override {
    if (event.object) {
      event.meta = event.object->meta;
      add_issues(findings, minds_addresses(*event.object), event.meta.key, "object", event.issues);
      if (findings.mistake) {
        event.object.reset();
      }
      return;
    }
    // Only one of the two was read; the other is empty.
    event.meta = std::move(bookmark_.meta);
    event.initial_events_end = bookmark_.initial_events_end;
    event.status = std::move(status_.status);
    add_issues(findings, false, event.meta.key, "object", event.issues);
  }

  std::string type;
  bool object_seen = false;
  std::optional<EventType> read_as;
  WatchEvent<T> event;

 private:
  std::optional<EventType> known_;
  json::Bookmark bookmark_;
  json::StatusBody status_;
};

template <typename T>
Slot event_object(void* target) {
  return static_cast<EventBody<T>*>(target)->open_object();
}

template <typename T>
constexpr json::Field kEventBody[] = {
    {"type", &json::value<&EventBody<T>::type>},
    {"object", &event_object<T>},
};

template <typename T>
Result<> read_event(std::string_view frame, EventBody<T>& body) {
  const auto findings = json::read(frame, Slot{ObjectSlot{&body, json::shape_of(kEventBody<T>)}});
  if (!findings) {
    return fail("watch event", findings.error());
  }
  if (findings->mistake) {
    return fail(Errc::Invalid, "not a watch event: " + *findings->mistake);
  }
  return {};
}

}  // namespace

template <typename T>
Result<DecodedList<T>> decode_list(std::string_view body) {
  ListBody<T> top;
  const auto findings = json::read(body, Slot{ObjectSlot{&top, json::shape_of(kListBody<T>)}});
  if (!findings) {
    return fail("list", findings.error());
  }
  if (top.kind == "Status") {
    const auto status = decode_status(body);
    return fail(
        Errc::Invalid,
        "a Status instead of a list: " +
            (status ? status->reason + ": " + json::excerpt(status->message, 200)
                    : status.error().what));
  }
  if (!top.kind.ends_with("List")) {
    return fail(Errc::Invalid, "not a list: kind \"" + json::excerpt(top.kind) + "\"");
  }
  if (findings->mistake) {
    return fail(Errc::Invalid, "not a list: " + *findings->mistake);
  }
  return std::move(top.list);
}

template <typename T>
Result<T> decode_object(std::string_view body, std::vector<DecodeIssue>* issues) {
  class Closer final : public json::Record {
   public:
    void close(const Findings& f) override { findings = f; }
    Findings findings;
  };
  T object;
  Closer closer;
  const auto read = json::read(body, Slot{ObjectSlot{&object, json::shape_for<T>(), &closer}});
  if (!read) {
    return tl::unexpected(read.error());
  }
  std::vector<DecodeIssue> found;
  add_issues(closer.findings, minds_addresses(object), object.meta.key, "object", found);
  if (closer.findings.mistake) {
    return fail(Errc::Invalid, found.front().object + ": " + found.front().what);
  }
  if (issues != nullptr) {
    issues->insert(issues->end(), found.begin(), found.end());
  }
  return object;
}

// Fields of the wrong type are left empty and no error: whoever asks has an HTTP code to fall back
// on, and half a Status is more than none.
Result<ApiStatus> decode_status(std::string_view body) {
  json::StatusBody status;
  const auto read =
      json::read(body, Slot{ObjectSlot{&status, json::shape_for<json::StatusBody>()}});
  if (!read) {
    return fail("status", read.error());
  }
  if (status.kind != "Status") {
    return fail(Errc::Invalid, "not a Status: kind \"" + json::excerpt(status.kind) + "\"");
  }
  return std::move(status.status);
}

template <typename T>
Result<WatchEvent<T>> decode_watch_event(std::string_view frame) {
  EventBody<T> body;
  if (auto read = read_event(frame, body); !read) {
    return tl::unexpected(read.error());
  }
  const auto type = parse_event_type(body.type);
  if (!type) {
    return fail(Errc::Invalid, "watch event of unknown type \"" + json::excerpt(body.type) + "\"");
  }
  if (!body.object_seen) {
    return fail(Errc::Invalid, "not a watch event: no object");
  }
  if (body.read_as == type) {
    return std::move(body.event);
  }
  EventBody<T> again(*type);
  if (auto read = read_event(frame, again); !read) {
    return tl::unexpected(read.error());
  }
  return std::move(again.event);
}

template Result<DecodedList<Service>> decode_list(std::string_view);
template Result<DecodedList<EndpointSlice>> decode_list(std::string_view);
template Result<DecodedList<Node>> decode_list(std::string_view);
template Result<DecodedList<ServiceCidr>> decode_list(std::string_view);

template Result<Service> decode_object(std::string_view, std::vector<DecodeIssue>*);
template Result<EndpointSlice> decode_object(std::string_view, std::vector<DecodeIssue>*);
template Result<Node> decode_object(std::string_view, std::vector<DecodeIssue>*);
template Result<ServiceCidr> decode_object(std::string_view, std::vector<DecodeIssue>*);

template Result<WatchEvent<Service>> decode_watch_event(std::string_view);
template Result<WatchEvent<EndpointSlice>> decode_watch_event(std::string_view);
template Result<WatchEvent<Node>> decode_watch_event(std::string_view);
template Result<WatchEvent<ServiceCidr>> decode_watch_event(std::string_view);

}  // namespace shunt::kube
