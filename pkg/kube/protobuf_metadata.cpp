#include "kube/protobuf_metadata.h"

#include "kube/utf8.h"

namespace shunt::kube::protobuf {

std::int64_t read_seconds(Message m) {
  std::int64_t seconds = 0;
  while (m.next()) {
    if (m.field() == 1) {
      seconds = m.int64("seconds");
    } else {
      m.skip();
    }
  }
  return seconds;
}

Entry read_entry(Message m) {
  Entry out;
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.key = m.bytes("key");
        break;
      case 2:
        out.value = m.bytes("value");
        break;
      default:
        m.skip();
    }
  }
  return out;
}

std::string_view checked(const Message& m, const char* key, std::string_view value) {
  if (!is_utf8(value)) {
    m.refuse(key, Message::kAlone, "not UTF-8: \"" + excerpt(value) + "\"");
  }
  return value;
}

void add_named(
    Message m, std::uint32_t number, const char* field_name, std::vector<std::string>& out) {
  std::string& name = out.emplace_back();
  while (m.next()) {
    if (m.field() == number) {
      name = m.text(field_name);
    } else {
      m.skip();
    }
  }
}

void add_text(Message& m, const char* name, std::vector<std::string>& out) {
  out.emplace_back(m.text(name, out.size()));
}

}  // namespace shunt::kube::protobuf
