#include "kube/json_reader.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

namespace shunt::kube::json {
namespace {

// The words of a message: "expected a string, got an array".
struct Expected {
  const char* operator()(std::monostate) const { return "anything"; }
  const char* operator()(const std::string*) const { return "a string"; }
  const char* operator()(const std::optional<std::string>*) const { return "a string"; }
  const char* operator()(const std::int32_t*) const { return "a number"; }
  const char* operator()(const std::optional<std::int32_t>*) const { return "a number"; }
  const char* operator()(const bool*) const { return "a boolean"; }
  const char* operator()(const TextSlot&) const { return "a string"; }
  const char* operator()(const ObjectSlot&) const { return "an object"; }
  const char* operator()(const ListSlot&) const { return "an array"; }
};

// An object or array that is being read into something. What is skipped has no frame.
struct Frame {
  std::variant<ObjectSlot, ListSlot> container;
  const Field* field = nullptr;  // object: the key whose value is being read, if we know it
  Slot next{};                   // object: where that value goes
  std::size_t index = 0;         // array: elements begun so far
};

// The member functions below the constructor are nlohmann's SAX interface: false stops the parser.
class Reader {
 public:
  explicit Reader(const Slot& root) : root_(root) {}

  bool null();
  bool boolean(bool value);
  bool number_integer(std::int64_t value) { return integer(value); }
  bool number_unsigned(std::uint64_t value) { return integer(value); }
  bool number_float(double value, const std::string& spelling);
  bool string(std::string& value);
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON has none
  bool start_object(std::size_t);
  bool start_array(std::size_t);
  bool key(std::string& name);
  bool end_object() { return end_container(); }
  bool end_array() { return end_container(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) {
    error_ = "not JSON: " + excerpt(error.what(), 200);
    return false;
  }

  const std::string& error() const { return error_; }
  const Findings& body_findings() const { return body_; }

 private:
  Slot take();
  template <typename Integer>
  bool integer(Integer value);
  bool enter(const Slot& slot, bool is_object);
  bool end_container();
  bool wrong_type(const Slot& slot, const char* got);
  void mistake(std::string what);
  std::string path() const;
  Findings& findings() { return record_ != nullptr ? record_findings_ : body_; }

  Slot root_;
  std::vector<Frame> frames_;
  std::size_t skipping_ = 0;  // containers open inside a value that nobody wants
  Record* record_ = nullptr;
  std::size_t record_frame_ = 0;  // paths are told from here
  Findings record_findings_;
  Findings body_;
  std::string error_;
};

// Where the value that begins now belongs.
Slot Reader::take() {
  if (frames_.empty()) {
    return root_;
  }
  Frame& top = frames_.back();
  if (const auto* list = std::get_if<ListSlot>(&top.container)) {
    return list->append(list->target, top.index++);
  }
  return top.next;
}

bool Reader::null() {
  if (skipping_ > 0) {
    return true;
  }
  const Slot slot = take();
  // A Record was opened by whoever made the slot, so it must hear an end.
  const auto* object = std::get_if<ObjectSlot>(&slot.to);
  return object == nullptr || object->record == nullptr || wrong_type(slot, "null");
}

bool Reader::boolean(bool value) {
  if (skipping_ > 0) {
    return true;
  }
  const Slot slot = take();
  if (bool* const* flag = std::get_if<bool*>(&slot.to)) {
    **flag = value;
    return true;
  }
  return wrong_type(slot, "a boolean");
}

template <typename Integer>
bool Reader::integer(Integer value) {
  if (skipping_ > 0) {
    return true;
  }
  const Slot slot = take();
  auto* const* plain = std::get_if<std::int32_t*>(&slot.to);
  auto* const* optional = std::get_if<std::optional<std::int32_t>*>(&slot.to);
  if (plain == nullptr && optional == nullptr) {
    return wrong_type(slot, "a number");
  }
  if (!std::in_range<std::int32_t>(value)) {
    mistake("expected a 32-bit integer, got " + std::to_string(value));
    return true;
  }
  if (plain != nullptr) {
    **plain = static_cast<std::int32_t>(value);
  } else {
    **optional = static_cast<std::int32_t>(value);
  }
  return true;
}

bool Reader::number_float(double, const std::string& spelling) {
  if (skipping_ > 0) {
    return true;
  }
  const Slot slot = take();
  if (std::holds_alternative<std::int32_t*>(slot.to) ||
      std::holds_alternative<std::optional<std::int32_t>*>(slot.to)) {
    mistake("expected a 32-bit integer, got " + excerpt(spelling));
    return true;
  }
  return wrong_type(slot, "a number");
}

bool Reader::string(std::string& value) {
  if (skipping_ > 0) {
    return true;
  }
  const Slot slot = take();
  // Copied, not moved: the lexer's buffer is as large as the longest token so far, and it is
  // reused.
  if (auto* const* plain = std::get_if<std::string*>(&slot.to)) {
    **plain = value;
  } else if (auto* const* optional = std::get_if<std::optional<std::string>*>(&slot.to)) {
    **optional = value;
  } else if (const auto* text = std::get_if<TextSlot>(&slot.to)) {
    switch (text->set(text->target, value)) {
      case Verdict::Fine:
        break;
      case Verdict::NotAnAddress:
        findings().remarks.push_back(path() + ": not an IP address: \"" + excerpt(value) + "\"");
        break;
      case Verdict::WrongKind:
        mistake("\"" + excerpt(value) + "\" is not the kind expected here");
        break;
    }
  } else {
    return wrong_type(slot, "a string");
  }
  return true;
}

bool Reader::start_object(std::size_t) {
  return enter(skipping_ > 0 ? Slot{} : take(), /*is_object=*/true);
}

bool Reader::start_array(std::size_t) {
  return enter(skipping_ > 0 ? Slot{} : take(), /*is_object=*/false);
}

bool Reader::enter(const Slot& slot, bool is_object) {
  if (frames_.size() + skipping_ >= kMaxDepth) {
    error_ = "JSON nested deeper than " + std::to_string(kMaxDepth);
    return false;
  }
  const auto* object = std::get_if<ObjectSlot>(&slot.to);
  const auto* list = std::get_if<ListSlot>(&slot.to);
  if (is_object && object != nullptr) {
    if (object->record != nullptr) {
      record_ = object->record;
      record_frame_ = frames_.size();
      record_findings_ = {};
    }
    frames_.push_back(Frame{.container = *object});
  } else if (!is_object && list != nullptr) {
    list->clear(list->target);
    frames_.push_back(Frame{.container = *list});
  } else {
    ++skipping_;
    return skipping_ > 1 || wrong_type(slot, is_object ? "an object" : "an array");
  }
  return true;
}

bool Reader::key(std::string& name) {
  if (skipping_ > 0) {
    return true;
  }
  Frame& top = frames_.back();
  const ObjectSlot& object = std::get<ObjectSlot>(top.container);
  top.field = nullptr;
  top.next = Slot{};
  for (std::size_t i = 0; i < object.shape.count; ++i) {
    if (object.shape.fields[i].key == name) {
      top.field = &object.shape.fields[i];
      top.next = top.field->slot(object.target);
      break;
    }
  }
  return true;
}

bool Reader::end_container() {
  if (skipping_ > 0) {
    --skipping_;
    return true;
  }
  frames_.pop_back();
  if (record_ != nullptr && frames_.size() == record_frame_) {
    std::exchange(record_, nullptr)->close(record_findings_);
  }
  return true;
}

// The value stays unread. True, so that a mismatch can be the last word of a handler: it stops
// nothing.
bool Reader::wrong_type(const Slot& slot, const char* got) {
  if (std::holds_alternative<std::monostate>(slot.to)) {
    return true;
  }
  std::string what = std::string("expected ") + std::visit(Expected{}, slot.to) + ", got " + got;
  const auto* object = std::get_if<ObjectSlot>(&slot.to);
  if (object != nullptr && object->record != nullptr) {
    object->record->close(Findings{.mistake = std::move(what), .remarks = {}});
  } else {
    mistake(std::move(what));
  }
  return true;
}

void Reader::mistake(std::string what) {
  if (!findings().mistake) {
    const std::string where = path();
    findings().mistake = where.empty() ? std::move(what) : where + ": " + what;
  }
}

// "spec.ports[0].port". Costs nothing until it is asked for: the frames hold all of it.
std::string Reader::path() const {
  std::string out;
  for (std::size_t i = record_ != nullptr ? record_frame_ : 0; i < frames_.size(); ++i) {
    const Frame& frame = frames_[i];
    if (std::holds_alternative<ListSlot>(frame.container)) {
      out += '[' + std::to_string(frame.index - 1) + ']';
    } else if (frame.field != nullptr) {
      out += out.empty() ? "" : ".";
      out += frame.field->key;
    }
  }
  return out;
}

}  // namespace

Result<Findings> read(std::string_view document, const Slot& root) {
  // nlohmann's lexer takes a NUL for the end of the text and would ignore what follows. JSON never
  // has one: in a string it is written \u0000.
  if (document.find('\0') != std::string_view::npos) {
    return fail(Errc::Invalid, "not JSON: a NUL byte");
  }
  // It would skip one at the beginning of an item as well.
  if (document.starts_with("\xef\xbb\xbf")) {
    return fail(Errc::Invalid, "not JSON: a byte order mark");
  }
  Reader reader(root);
  if (!nlohmann::json::sax_parse(document.begin(), document.end(), &reader)) {
    return fail(Errc::Invalid, reader.error());
  }
  return reader.body_findings();
}

}  // namespace shunt::kube::json
