#include "kube/decode_protobuf.h"

#include "kube/protobuf_list.h"
#include "kube/protobuf_objects.h"

namespace shunt::kube::protobuf {
namespace {

// In watch events an object of another kind is one that we did not ask for.
template <typename T>
Findings read_enveloped(std::string_view body, T& out) {
  Envelope envelope;
  Findings findings;
  findings.mistake = caught([&] { envelope = open_envelope(body); });
  if (findings.mistake) {
    return findings;
  }
  findings = read_object(envelope.raw, out);
  const std::string_view kind = envelope.type.kind;
  if (!kind.empty() && kind != kind_of<T>()) {
    // Whatever else was read of it was read by another kind's numbers, but for the metadata.
    findings.mistake = "kind: \"" + excerpt(kind) + "\" is not the kind expected here";
  }
  return findings;
}

template <>
Findings read_enveloped(std::string_view body, Bookmark& out) {
  Findings findings;
  findings.mistake = caught([&] {
    const Envelope envelope = open_envelope(body);
    findings = read_object(envelope.raw, out);
  });
  return findings;
}

struct RawEvent {
  std::string_view type;
  std::string_view object;
  bool object_seen = false;
};

void read_raw_extension(Message m, RawEvent& out) {
  while (m.next()) {
    if (m.field() == 1) {
      out.object = m.bytes("raw");
    } else {
      m.skip();
    }
  }
}

void read_event(Message m, RawEvent& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.type = m.text("type");
        break;
      case 2:
        out.object_seen = true;
        read_raw_extension(m.message("object"), out);
        break;
      default:
        m.skip();
    }
  }
}

}  // namespace

bool has_envelope(std::string_view body) { return body.starts_with(kMagic); }

template <typename T>
Result<DecodedList<T>> decode_list(std::string_view body) {
  return decode_whole_list<T, ProtobufListDecoder>(body);
}

template <typename T>
Result<T> decode_object(std::string_view body, std::vector<DecodeIssue>* issues) {
  T object;
  const Findings findings = read_enveloped(body, object);
  const auto found = issues_of(findings, object, "object");
  if (findings.mistake) {
    return fail(Errc::Invalid, excerpt(found.front().object, 400) + ": " + found.front().what);
  }
  if (issues != nullptr) {
    issues->insert(issues->end(), found.begin(), found.end());
  }
  return object;
}

// What is wrong after the envelope is left out and no error: whoever asks has an HTTP code to fall
// back on, and half a Status is more than none.
Result<ApiStatus> decode_status(std::string_view body) {
  Envelope envelope;
  if (const auto mistake = caught([&] { envelope = open_envelope(body); })) {
    return fail(Errc::Invalid, "status: " + *mistake);
  }
  if (envelope.type.kind != "Status") {
    return fail(Errc::Invalid, "not a Status: kind \"" + excerpt(envelope.type.kind) + "\"");
  }
  ApiStatus status;
  (void)read_object(envelope.raw, status);  // see above
  return status;
}

template <typename T>
Result<WatchEvent<T>> decode_watch_event(std::string_view frame) {
  RawEvent raw;
  if (const auto mistake = caught([&] { read_event(Message(frame), raw); })) {
    return fail(Errc::Invalid, "not a watch event: " + *mistake);
  }
  const auto type = parse_event_type(raw.type);
  if (!type) {
    return fail(Errc::Invalid, "watch event of unknown type \"" + excerpt(raw.type) + "\"");
  }
  if (!raw.object_seen) {
    return fail(Errc::Invalid, "not a watch event: no object");
  }
  WatchEvent<T> event;
  event.type = *type;
  if (*type == EventType::Error) {
    if (auto status = decode_status(raw.object)) {
      event.status = std::move(*status);
    } else {
      event.issues.push_back({.object = "object", .what = status.error().what});
    }
  } else if (*type == EventType::Bookmark) {
    Bookmark bookmark;
    const Findings findings = read_enveloped(raw.object, bookmark);
    event.meta = std::move(bookmark.meta);
    event.initial_events_end = bookmark.initial_events_end;
    event.issues = issues_of(findings, false, event.meta.key, "object");
  } else {
    T& object = event.object.emplace();
    const Findings findings = read_enveloped(raw.object, object);
    event.meta = object.meta;
    event.issues = issues_of(findings, object, "object");
    if (findings.mistake) {
      event.object.reset();
    }
  }
  return event;
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

}  // namespace shunt::kube::protobuf
