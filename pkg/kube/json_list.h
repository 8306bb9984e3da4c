// A JSON list that is decoded while it arrives: the elements of its "items" array are cut out and
// decoded one by one, and what remains is a small document that is read at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kube/decoded.h"

namespace shunt::kube {

// Tells the elements of the top level's "items" from the rest. It judges only what it must to know
// where an element ends: whether an element, or the rest, is JSON is for their readers to say.
class JsonListCutter {
 public:
  static constexpr std::size_t kMaxRest = std::size_t{1} << 20;
  explicit JsonListCutter(std::size_t max_item) : max_item_(max_item) {}

  // One element; nothing for one above the limit. The view is valid during the call only.
  using OnItem = std::function<void(std::optional<std::string_view>)>;
  Result<> feed(std::string_view piece, const OnItem& on_item);

  // All brackets that were opened are closed.
  bool complete() const { return place_ == Place::Rest && depth_ == 0 && !in_string_; }
  // The list with its items taken out: {"kind":"ServiceList","metadata":{...},"items":[]}
  std::string_view rest() const { return rest_; }

 private:
  enum class Place : std::uint8_t { Rest, BeforeItem, InItem, AfterItem };

  Result<> take_rest(char c);
  Result<> begin_item(char c);
  Result<> after_item(char c);
  std::size_t scan_item(std::string_view bytes);
  void take_item(std::string_view bytes, const OnItem& on_item);
  bool scan_string(char c);
  void end_items();

  std::size_t max_item_;
  Place place_ = Place::Rest;
  std::string rest_;
  std::size_t depth_ = 0;       // brackets of either kind that are open in the rest
  std::size_t text_begin_ = 0;  // in rest_, of the last string at the top level
  std::size_t text_end_ = 0;
  bool items_next_ = false;  // "items": was read
  bool seen_items_ = false;

  bool in_string_ = false;  // in the rest, or in the item
  bool escaped_ = false;

  std::string item_;  // an item that began in an earlier piece
  char open_ = 0;     // the bracket that the item began with; 0 for a string, number or literal
  char close_ = 0;
  std::size_t item_depth_ = 0;  // brackets of that kind
  bool too_large_ = false;
  bool after_comma_ = false;
};

template <typename T>
class JsonListDecoder final : public ListDecoder<T> {
 public:
  explicit JsonListDecoder(ListSink<T> sink, std::size_t max_item = kMaxObject);
  Result<> feed(std::string_view piece) override;
  Result<ListMeta> finish() override;

 private:
  void take_item(std::optional<std::string_view> text);

  ListSink<T> sink_;
  JsonListCutter cutter_;
  JsonListCutter::OnItem on_item_;
  std::size_t index_ = 0;
};

}  // namespace shunt::kube
