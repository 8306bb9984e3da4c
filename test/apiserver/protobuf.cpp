#include "test/apiserver/protobuf.h"

#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "test/apiserver/json_text.h"
#include "test/apiserver/rfc3339.h"

namespace shunt::test_api::proto {
namespace {

using protozero::pbf_writer;

constexpr std::string_view kMagic{"k8s\0", 4};
// The numbers of runtime.Unknown, runtime.TypeMeta, metav1.WatchEvent, RawExtension and of lists.
constexpr std::uint32_t kUnknownTypeMeta = 1;
constexpr std::uint32_t kUnknownRaw = 2;
constexpr std::uint32_t kUnknownContentEncoding = 3;
constexpr std::uint32_t kUnknownContentType = 4;
constexpr std::uint32_t kTypeMetaApiVersion = 1;
constexpr std::uint32_t kTypeMetaKind = 2;
constexpr std::uint32_t kEventType = 1;
constexpr std::uint32_t kEventObject = 2;
constexpr std::uint32_t kExtensionRaw = 1;
constexpr std::uint32_t kListMetadata = 1;
constexpr std::uint32_t kListItems = 2;
// And of the small messages inside fields.
constexpr std::uint32_t kMapKey = 1;
constexpr std::uint32_t kMapValue = 2;

void add(pbf_writer& out, std::uint32_t number, std::string_view text) {
  out.add_bytes(number, text.data(), text.size());
}

// Adds a message; protozero would drop an empty one, which says something in these objects.
template <typename Fill>
void add_message(pbf_writer& out, std::uint32_t number, const Fill& fill) {
  bool empty = true;
  {
    pbf_writer inner(out, number);
    empty = !fill(inner);
  }
  if (empty) {
    add(out, number, "");
  }
}

bool is_string(std::string_view value) { return value.starts_with('"'); }

void add_text(pbf_writer& out, std::uint32_t number, std::string_view value) {
  if (!is_string(value) || value.size() < 2) {
    add(out, number, "");
  } else if (value.find('\\') == std::string_view::npos) {
    add(out, number, value.substr(1, value.size() - 2));
  } else {
    add(out, number, string_value(value));
  }
}

std::int64_t to_integer(std::string_view value) {
  std::int64_t out = 0;
  (void)std::from_chars(value.data(), value.data() + value.size(), out);  // 0 when it is none
  return out;
}

// Go's int32 and int64: negative ones take ten bytes.
void add_integer(pbf_writer& out, std::uint32_t number, std::int64_t value) {
  out.add_int64(number, value);
}

void add_time(pbf_writer& out, std::uint32_t number, std::string_view value) {
  const auto time = is_string(value) ? parse_rfc3339(string_value(value)) : std::nullopt;
  add_message(out, number, [&](pbf_writer& inner) {
    if (time) {
      add_integer(inner, 1, time->seconds);
      add_integer(inner, 2, time->nanos);
    }
    return time.has_value();
  });
}

void add_int_or_string(pbf_writer& out, std::uint32_t number, std::string_view value) {
  add_message(out, number, [&](pbf_writer& inner) {
    add_integer(inner, 1, is_string(value) ? 1 : 0);
    add_integer(inner, 2, is_string(value) ? 0 : to_integer(value));
    add_text(inner, 3, value);
    return true;
  });
}

void add_map(pbf_writer& out, const Field& field, std::string_view object) {
  for (Members entries(object); entries.next();) {
    if (!is_string(entries.value())) {
      continue;
    }
    pbf_writer entry(out, field.number);
    const bool plain = entries.key().find('\\') == std::string_view::npos;
    add(entry,
        kMapKey,
        plain ? entries.key() : string_value("\"" + std::string(entries.key()) + "\""));
    if (field.type == Type::QuantityMap) {
      pbf_writer quantity(entry, kMapValue);
      add_text(quantity, 1, entries.value());
    } else {
      add_text(entry, kMapValue, entries.value());
    }
  }
}

bool fits(Type type, std::string_view value) {
  const char first = value.empty() ? '\0' : value.front();
  const bool digit = first == '-' || (first >= '0' && first <= '9');
  switch (type) {
    case Type::String:
    case Type::Time:
      return first == '"';
    case Type::Int:
      return digit;
    case Type::Bool:
      return first == 't' || first == 'f';
    case Type::IntOrString:
      return digit || first == '"';
    case Type::RawJson:
    case Type::StringMap:
    case Type::QuantityMap:
    case Type::Nested:
      return first == '{';
  }
  return false;
}

bool write(pbf_writer& out, const Message& schema, std::string_view json);

// An absent value ("") writes the zero of the type.
void write_value(pbf_writer& out, const Field& field, std::string_view value) {
  switch (field.type) {
    case Type::String:
      add_text(out, field.number, value);
      break;
    case Type::Int:
      add_integer(out, field.number, to_integer(value));
      break;
    case Type::Bool:
      out.add_bool(field.number, value == "true");
      break;
    case Type::Time:
      add_time(out, field.number, value);
      break;
    case Type::IntOrString:
      add_int_or_string(out, field.number, value);
      break;
    case Type::RawJson: {
      pbf_writer raw(out, field.number);
      add(raw, 1, value);
      break;
    }
    case Type::StringMap:
    case Type::QuantityMap:
      add_map(out, field, value);
      break;
    case Type::Nested:
      add_message(out, field.number, [&](pbf_writer& inner) {
        return write(inner, *field.message, value);
      });
      break;
  }
}

bool is_map(const Field& field) {
  return field.type == Type::StringMap || field.type == Type::QuantityMap;
}

// False: nothing was written.
bool write_field(pbf_writer& out, const Field& field, std::string_view value) {
  if (field.rule == Rule::Repeated && !is_map(field)) {
    bool written = false;
    for (Elements each(value); each.next();) {
      if (fits(field.type, each.value())) {
        write_value(out, field, each.value());
        written = true;
      }
    }
    return written;
  }
  const bool given = fits(field.type, value) && !(is_map(field) && value == "{}");
  if (given || field.rule == Rule::Always) {
    write_value(out, field, given ? value : std::string_view());
    return true;
  }
  return false;
}

// Where each field of the schema stands in the object.
std::array<std::string_view, kMaxFields> values_of(const Message& schema, std::string_view json) {
  std::array<std::string_view, kMaxFields> out;
  std::size_t expected = 0;  // members mostly come in the order of the schema
  for (Members members(json); members.next();) {
    for (std::size_t tries = 0; tries < schema.fields.size(); ++tries) {
      const std::size_t at = (expected + tries) % schema.fields.size();
      if (schema.fields[at].name == members.key()) {
        out[at] = members.value();
        expected = at + 1;
        break;
      }
    }
  }
  return out;
}

// False: nothing was written.
bool write(pbf_writer& out, const Message& schema, std::string_view json) {
  const auto values = values_of(schema, json);
  bool written = false;
  for (std::size_t at = 0; at < schema.fields.size(); ++at) {
    written = write_field(out, schema.fields[at], values[at]) || written;
  }
  return written;
}

void append_varint(std::uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

// The key of a length-delimited field and its length; its bytes follow.
void append_head(std::uint32_t number, std::size_t size, std::string& out) {
  append_varint((number << 3U) | 2U, out);
  append_varint(size, out);
}

}  // namespace

std::string encoded(const Message& schema, std::string_view json) {
  std::string out;
  out.reserve(json.size() / 2 + 64);
  pbf_writer writer(out);
  (void)write(writer, schema, json);  // nothing at all is an answer too
  return out;
}

std::string envelope_head(std::string_view api_version, std::string_view kind, std::size_t size) {
  std::string out(kMagic);
  {
    pbf_writer unknown(out);
    pbf_writer type(unknown, kUnknownTypeMeta);
    add(type, kTypeMetaApiVersion, api_version);
    add(type, kTypeMetaKind, kind);
  }
  append_head(kUnknownRaw, size, out);
  return out;
}

std::string_view envelope_tail() {
  static const std::string tail = [] {
    std::string out;
    pbf_writer unknown(out);
    add(unknown, kUnknownContentEncoding, "");
    add(unknown, kUnknownContentType, "");
    return out;
  }();
  return tail;
}

std::string enveloped(std::string_view api_version, std::string_view kind, std::string_view bytes) {
  return envelope_head(api_version, kind, bytes.size()).append(bytes).append(envelope_tail());
}

std::string frame_head(
    std::string_view type, std::string_view api_version, std::string_view kind, std::size_t size) {
  const std::string envelope = envelope_head(api_version, kind, size);
  const std::size_t envelope_size = envelope.size() + size + envelope_tail().size();
  std::string extension;
  append_head(kExtensionRaw, envelope_size, extension);
  std::string event;
  append_head(kEventType, type.size(), event);
  event.append(type);
  append_head(kEventObject, extension.size() + envelope_size, event);
  const std::size_t length = event.size() + extension.size() + envelope_size;
  std::string out;
  out.reserve(4 + event.size() + extension.size() + envelope.size());
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out += static_cast<char>((length >> shift) & 0xffU);
  }
  return out.append(event).append(extension).append(envelope);
}

std::string list_metadata(std::string_view json) {
  const std::string bytes = encoded(kListMeta, json);
  std::string out;
  append_head(kListMetadata, bytes.size(), out);
  return out + bytes;
}

std::string item_head(std::size_t size) {
  std::string out;
  append_head(kListItems, size, out);
  return out;
}

}  // namespace shunt::test_api::proto
