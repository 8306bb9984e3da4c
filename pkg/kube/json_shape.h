// Which keys of which JSON object land in which member: the vocabulary of the tables in
// json_objects.cpp. A table row names a key and a function that, given the struct being filled,
// answers with a Slot: where the value goes and what type it must have.
//
//   constexpr Field kServicePort[] = {
//       {"name", &value<&ServicePortSpec::name>},
//       {"port", &value<&ServicePortSpec::port>},
//   };
//   constexpr Field kServiceSpec[] = {
//       {"clusterIP", &value<&Service::cluster_ip>},
//       {"ports", &list<&Service::ports, kServicePort>},
//   };
//
// The void pointers stay inside this file and json_reader.cpp: a row is made from a member pointer,
// so a table for Service cannot name a member of Node without the functions below casting to Node.
// What the compiler cannot see is that nested tables speak of one struct; the tests of every field
// do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "kube/findings.h"

namespace shunt::kube::json {

struct Field;
struct Slot;

// The keys that we read of one JSON object. Every other key is skipped with all it holds.
struct Shape {
  const Field* fields = nullptr;
  std::size_t count = 0;
};

// An API object that stands or falls alone: findings inside it are told to its Record and not to
// the whole body.
class Record {
 public:
  virtual ~Record() = default;
  virtual void close(const Findings& findings) = 0;
};

// What became of a text that means more than its characters.
enum class Verdict : std::uint8_t { Fine, NotAnAddress, WrongKind };

struct TextSlot {
  void* target;
  Verdict (*set)(void* target, std::string_view text);
};
struct ObjectSlot {
  void* target;
  Shape shape;
  Record* record = nullptr;
};
struct ListSlot {
  void* target;
  void (*clear)(void* target);  // at `[`, so the last of several equal keys wins
  Slot (*append)(void* target, std::size_t index);
};

// monostate: skip the value, whatever it is.
struct Slot {
  std::variant<
      std::monostate,
      std::string*,
      std::optional<std::string>*,
      std::int32_t*,
      std::optional<std::int32_t>*,
      bool*,
      TextSlot,
      ObjectSlot,
      ListSlot>
      to;
};

struct Field {
  std::string_view key;
  Slot (*slot)(void* target);
};

template <typename Fields>
constexpr Shape shape_of(const Fields& fields) {
  return Shape{std::data(fields), std::size(fields)};
}

// For decltype only: the struct that a member pointer, or a setter, belongs to.
template <typename Owner, typename Member>
Owner owner_of(Member Owner::*);
template <typename Owner>
Owner owner_of(Verdict (*)(Owner&, std::string_view));

template <typename T>
Slot slot_for(T& member) {
  return Slot{&member};
}
inline Slot slot_for(std::vector<std::string>& texts) {
  return Slot{ListSlot{
      .target = &texts,
      .clear = [](void* target) { static_cast<std::vector<std::string>*>(target)->clear(); },
      .append =
          [](void* target, std::size_t) {
            return slot_for(static_cast<std::vector<std::string>*>(target)->emplace_back());
          }}};
}

// A string, number, boolean or array of strings, as the type of the member says. Several members
// are a way down: value<&Service::meta, &ObjectMeta::uid>.
template <auto First, auto... Rest>
Slot value(void* target) {
  auto& owner = *static_cast<decltype(owner_of(First))*>(target);
  return slot_for(((owner.*First).*....*Rest));
}

// The element of a list of strings that are wrapped in objects.
inline Slot itself(void* target) { return slot_for(*static_cast<std::string*>(target)); }

// A string that `Set` gives meaning to.
template <auto Set>
Slot text(void* target) {
  using Owner = decltype(owner_of(Set));
  return Slot{TextSlot{.target = target, .set = [](void* owner, std::string_view t) {
                         return Set(*static_cast<Owner*>(owner), t);
                       }}};
}

// A JSON object whose fields land in the same struct.
template <const auto& kFields>
Slot inside(void* target) {
  return Slot{ObjectSlot{.target = target, .shape = shape_of(kFields)}};
}

// An array of objects: each is a new element of the vector.
template <auto Member, const auto& kFields>
Slot list(void* target) {
  auto& elements = static_cast<decltype(owner_of(Member))*>(target)->*Member;
  using Elements = std::remove_reference_t<decltype(elements)>;
  return Slot{ListSlot{
      .target = &elements,
      .clear = [](void* t) { static_cast<Elements*>(t)->clear(); },
      .append =
          [](void* t, std::size_t) {
            return inside<kFields>(&static_cast<Elements*>(t)->emplace_back());
          }}};
}

}  // namespace shunt::kube::json
