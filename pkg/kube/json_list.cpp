#include "kube/json_list.h"

#include "kube/decode_json.h"
#include "kube/json_objects.h"
#include "kube/json_reader.h"

namespace shunt::kube {
namespace {

using json::ObjectSlot;
using json::Slot;

// The list without its items.
struct ListBody {
  std::string kind;
  ListMeta meta;
  bool stray_items = false;
};

constexpr json::Field kListMeta[] = {
    {"resourceVersion", &json::value<&ListMeta::resource_version>},
    {"continue", &json::value<&ListMeta::continue_token>},
};
Slot list_metadata(void* target) {
  return json::inside<kListMeta>(&static_cast<ListBody*>(target)->meta);
}

// The cutter took the items out. What is still there has its key written with escapes, which no
// server does, and must not pass for an empty list.
Slot stray_items(void* target) {
  return Slot{json::ListSlot{
      .target = target,
      .clear = [](void*) {},
      .append =
          [](void* body, std::size_t) {
            static_cast<ListBody*>(body)->stray_items = true;
            return Slot{};
          }}};
}

constexpr json::Field kListBody[] = {
    {"kind", &json::value<&ListBody::kind>},
    {"metadata", &list_metadata},
    {"items", &stray_items},
};

class Closer final : public json::Record {
 public:
  void close(const Findings& f) override { findings = f; }
  Findings findings;
};

tl::unexpected<Error> status_instead(std::string_view body) {
  const auto status = decode_status(body);
  return fail(
      Errc::Invalid,
      "a Status instead of a list: " +
          (status ? excerpt(status->reason) + ": " + excerpt(status->message, 200)
                  : status.error().what));
}

}  // namespace

template <typename T>
JsonListDecoder<T>::JsonListDecoder(ListSink<T> sink, std::size_t max_item)
    : sink_(std::move(sink)),
      cutter_(max_item),
      on_item_([this](std::optional<std::string_view> text) { take_item(text); }) {}

template <typename T>
Result<> JsonListDecoder<T>::feed(std::string_view piece) {
  auto fed = cutter_.feed(piece, on_item_);
  if (!fed) {
    return fail("list", fed.error());
  }
  return {};
}

template <typename T>
void JsonListDecoder<T>::take_item(std::optional<std::string_view> text) {
  T item;
  Closer closer;
  if (!text) {
    closer.findings.mistake = "larger than the limit of an object";
  } else if (const auto read =
                 json::read(*text, Slot{ObjectSlot{&item, json::shape_for<T>(), &closer}});
             !read) {
    closer.findings.mistake = read.error().what;
  }
  deliver(std::move(item), closer.findings, index_++, sink_);
}

template <typename T>
Result<ListMeta> JsonListDecoder<T>::finish() {
  if (!cutter_.complete()) {
    return fail(Errc::Invalid, "list: not JSON: it ends too early");
  }
  ListBody body;
  const auto findings =
      json::read(cutter_.rest(), Slot{ObjectSlot{&body, json::shape_of(kListBody)}});
  if (!findings) {
    return fail("list", findings.error());
  }
  if (body.kind == "Status") {
    return status_instead(cutter_.rest());
  }
  if (!body.kind.ends_with("List")) {
    return fail(Errc::Invalid, "not a list: kind \"" + excerpt(body.kind) + "\"");
  }
  if (findings->mistake || body.stray_items) {
    return fail(
        Errc::Invalid, "not a list: " + findings->mistake.value_or("items under an escaped name"));
  }
  return std::move(body.meta);
}

template class JsonListDecoder<Service>;
template class JsonListDecoder<EndpointSlice>;
template class JsonListDecoder<Node>;
template class JsonListDecoder<ServiceCidr>;

}  // namespace shunt::kube
