#include "kube/decode_json.h"

#include <utility>

#include "kube/json_list.h"
#include "kube/json_objects.h"
#include "kube/json_reader.h"

namespace shunt::kube {
namespace {

using json::ObjectSlot;
using json::Slot;

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
      return Slot{ObjectSlot{&bookmark_, json::shape_for<Bookmark>(), this}};
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
      event.issues = issues_of(findings, *event.object, "object");
      if (findings.mistake) {
        event.object.reset();
      }
      return;
    }
    // Only one of the two was read; the other is empty.
    event.meta = std::move(bookmark_.meta);
    event.initial_events_end = bookmark_.initial_events_end;
    event.status = std::move(status_.status);
    event.issues = issues_of(findings, false, event.meta.key, "object");
  }

  std::string type;
  bool object_seen = false;
  std::optional<EventType> read_as;
  WatchEvent<T> event;

 private:
  std::optional<EventType> known_;
  Bookmark bookmark_;
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
  return decode_whole_list<T, JsonListDecoder>(body);
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
  const auto found = issues_of(closer.findings, object, "object");
  if (closer.findings.mistake) {
    return fail(Errc::Invalid, excerpt(found.front().object, 400) + ": " + found.front().what);
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
    return fail(Errc::Invalid, "not a Status: kind \"" + excerpt(status.kind) + "\"");
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
    return fail(Errc::Invalid, "watch event of unknown type \"" + excerpt(body.type) + "\"");
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
