// What surrounds the objects: the envelope, Status, bookmarks and the metadata of lists, from
// protobuf.
#include "kube/protobuf_metadata.h"
#include "kube/protobuf_objects.h"

namespace shunt::kube::protobuf {
namespace {

struct BookmarkExtras : NoExtras {
  static void take_annotation(Bookmark& bookmark, const Message&, const Entry& entry) {
    if (entry.key == kInitialEventsEndAnnotation) {
      bookmark.initial_events_end = entry.value == "true";
    }
  }
};

void read(Message m, Bookmark& out) {
  while (m.next()) {
    if (m.field() == 1) {
      read_metadata<BookmarkExtras>(m.message("metadata"), out);
    } else {
      m.skip();
    }
  }
}

// retryAfterSeconds is written when it is 0, too.
void read_details(Message m, ApiStatus& out) {
  while (m.next()) {
    switch (m.field()) {
      case 4:
        add_named(m.message("causes", out.cause_reasons.size()), 1, "reason", out.cause_reasons);
        break;
      case 5: {
        const std::int32_t seconds = m.int32("retryAfterSeconds");
        out.retry_after_seconds = seconds == 0 ? std::nullopt : std::optional<int>(seconds);
        break;
      }
      default:
        m.skip();
    }
  }
}

void read(Message m, ApiStatus& out) {
  while (m.next()) {
    switch (m.field()) {
      case 3:
        out.message = m.text("message");
        break;
      case 4:
        out.reason = m.text("reason");
        break;
      case 5:
        read_details(m.message("details"), out);
        break;
      case 6:
        out.code = m.int32("code");
        break;
      default:
        m.skip();
    }
  }
}

void read(Message m, ListMeta& out) {
  while (m.next()) {
    switch (m.field()) {
      case 2:
        out.resource_version = m.text("resourceVersion");
        break;
      case 3:
        out.continue_token = m.text("continue");
        break;
      default:
        m.skip();
    }
  }
}

}  // namespace

Findings read_object(std::string_view bytes, Bookmark& out) {
  return findings_of([&] { read(Message(bytes), out); });
}
Findings read_object(std::string_view bytes, ApiStatus& out) {
  return findings_of([&] { read(Message(bytes), out); });
}
Findings read_object(std::string_view bytes, ListMeta& out) {
  return findings_of([&] { read(Message(bytes), out); });
}

TypeMeta read_type_meta(Message m) {
  TypeMeta out;
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.api_version = m.text("apiVersion");
        break;
      case 2:
        out.kind = m.text("kind");
        break;
      default:
        m.skip();
    }
  }
  return out;
}

Envelope open_envelope(std::string_view body) {
  if (!body.starts_with(kMagic)) {
    throw Mistake{"not a Kubernetes protobuf object: it does not begin with k8s"};
  }
  if (body.size() == kMagic.size()) {
    throw Mistake{"an empty protobuf object"};
  }
  Envelope out;
  Message m(body.substr(kMagic.size()));
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.type = read_type_meta(m.message("typeMeta"));
        break;
      case 2:
        out.raw = m.bytes("raw");
        break;
      default:
        m.skip();
    }
  }
  return out;
}

}  // namespace shunt::kube::protobuf
