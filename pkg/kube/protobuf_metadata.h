// metav1.ObjectMeta and the small messages that many objects share. Inside of protobuf_*.cpp only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kube/findings.h"
#include "kube/protobuf_message.h"

namespace shunt::kube::protobuf {

// A time in whole seconds; a null one is an empty message.
std::int64_t read_seconds(Message m);

// An entry of a map of strings. `value` is not yet known to be text: most are not read.
struct Entry {
  std::string_view key;
  std::string_view value;
};
Entry read_entry(Message m);

// `value`, once it is known to be text.
std::string_view checked(const Message& m, const char* key, std::string_view value);

// A list of messages of which we read the one text that is field `number`: hints, taints, causes.
void add_named(
    Message m, std::uint32_t number, const char* field_name, std::vector<std::string>& out);

// One more element of a list of texts.
void add_text(Message& m, const char* name, std::vector<std::string>& out);

// What `read_metadata` does with what only some kinds of objects read: take_label(object, metadata,
// entry) and so on. A kind overrides what it needs in a struct of its own.
struct NoExtras {
  template <typename T>
  static void take_label(T&, const Message&, const Entry&) {}
  template <typename T>
  static void take_annotation(T&, const Message&, const Entry&) {}
  template <typename T>
  static void take_deletion(T&) {}
};

template <typename Extras, typename T>
void read_metadata(Message m, T& object) {
  ObjectMeta& out = object.meta;
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.key.name = m.text("name");
        break;
      case 3:
        out.key.name_space = m.text("namespace");
        break;
      case 5:
        out.uid = m.text("uid");
        break;
      case 6:
        out.resource_version = m.text("resourceVersion");
        break;
      case 8:
        out.creation_seconds = read_seconds(m.message("creationTimestamp"));
        break;
      case 9:
        if (!m.bytes("deletionTimestamp").empty()) {
          Extras::take_deletion(object);
        }
        break;
      case 11: {
        const Message labels = m.message("labels");
        Extras::take_label(object, labels, read_entry(labels));
        break;
      }
      case 12: {
        const Message annotations = m.message("annotations");
        Extras::take_annotation(object, annotations, read_entry(annotations));
        break;
      }
      default:  // managedFields among them, which can be larger than all the rest
        m.skip();
    }
  }
}

}  // namespace shunt::kube::protobuf
