#include "kube/json_list.h"

namespace shunt::kube {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool may_begin_value(char c) {
  return c == '{' || c == '[' || c == '"' || c == '-' || (c >= '0' && c <= '9') || c == 't' ||
         c == 'f' || c == 'n';
}

tl::unexpected<Error> not_json(std::string_view what) {
  return fail(Errc::Invalid, "not JSON: " + std::string(what));
}

}  // namespace

// Every byte is looked at once, whatever the pieces: the state carries over.
Result<> JsonListCutter::feed(std::string_view piece, const OnItem& on_item) {
  while (!piece.empty()) {
    std::size_t taken = 1;
    Result<> step;
    switch (place_) {
      case Place::Rest:
        step = take_rest(piece.front());
        break;
      case Place::BeforeItem:
        step = begin_item(piece.front());
        taken = place_ == Place::InItem ? 0 : 1;
        break;
      case Place::InItem:
        taken = scan_item(piece);
        take_item(piece.substr(0, taken), on_item);
        break;
      case Place::AfterItem:
        step = after_item(piece.front());
        break;
    }
    if (!step) {
      return step;
    }
    piece.remove_prefix(taken);
  }
  return {};
}

// True while `c` belongs to a string, its closing quote included.
bool JsonListCutter::scan_string(char c) {
  if (!in_string_) {
    return false;
  }
  in_string_ = escaped_ || c != '"';
  escaped_ = !escaped_ && c == '\\';
  return true;
}

Result<> JsonListCutter::take_rest(char c) {
  if (rest_.size() >= kMaxRest) {
    return fail(Errc::Invalid, "not a list: more than 1 MiB beside its items");
  }
  rest_ += c;
  if (scan_string(c)) {
    if (!in_string_ && depth_ == 1) {
      text_end_ = rest_.size();
    }
    return {};
  }
  switch (c) {
    case '"':
      in_string_ = true;
      if (depth_ == 1) {
        text_begin_ = rest_.size() - 1;
      }
      break;
    case ':':
      if (depth_ == 1) {
        items_next_ =
            std::string_view(rest_).substr(text_begin_, text_end_ - text_begin_) == "\"items\"";
      }
      break;
    case ',':
      items_next_ = items_next_ && depth_ != 1;
      break;
    case '{':
    case '[':
      if (c == '[' && depth_ == 1 && items_next_) {
        // The first ones are delivered; it is too late to let the last array win.
        if (seen_items_) {
          return fail(Errc::Invalid, "not a list: two arrays of items");
        }
        seen_items_ = true;
        place_ = Place::BeforeItem;
      }
      ++depth_;
      break;
    case '}':
    case ']':
      depth_ -= depth_ > 0 ? 1 : 0;
      break;
    default:
      break;
  }
  return {};
}

Result<> JsonListCutter::begin_item(char c) {
  if (is_space(c)) {
    return {};
  }
  if (c == ']' && !after_comma_) {
    end_items();
    return {};
  }
  if (!may_begin_value(c)) {
    return not_json("no value where an item of a list must be");
  }
  place_ = Place::InItem;
  open_ = c == '{' || c == '[' ? c : '\0';
  close_ = c == '{' ? '}' : ']';
  item_depth_ = 0;
  return {};
}

Result<> JsonListCutter::after_item(char c) {
  if (c == ',') {
    after_comma_ = true;
    place_ = Place::BeforeItem;
  } else if (c == ']') {
    end_items();
  } else if (!is_space(c)) {
    return not_json("text between the items of a list");
  }
  return {};
}

void JsonListCutter::end_items() {
  rest_ += ']';
  --depth_;
  items_next_ = false;
  place_ = Place::Rest;
}

// How many of the bytes belong to the item; place_ tells whether it ended there. Brackets of the
// kind it began with are counted and no others: what is wrong inside an item is its own affair.
std::size_t JsonListCutter::scan_item(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (scan_string(c)) {
      continue;
    }
    if (c == '"') {
      in_string_ = true;
    } else if (open_ == '\0') {
      if (c == ',' || c == ']' || is_space(c)) {
        place_ = Place::AfterItem;
        return i;
      }
    } else if (c == open_) {
      ++item_depth_;
    } else if (c == close_ && --item_depth_ == 0) {
      place_ = Place::AfterItem;
      return i + 1;
    }
  }
  return bytes.size();
}

void JsonListCutter::take_item(std::string_view bytes, const OnItem& on_item) {
  too_large_ = too_large_ || item_.size() + bytes.size() > max_item_;
  if (place_ == Place::InItem) {
    if (!too_large_) {
      item_ += bytes;
    }
    return;
  }
  if (too_large_) {
    on_item(std::nullopt);
  } else if (item_.empty()) {
    on_item(bytes);
  } else {
    item_ += bytes;
    on_item(item_);
  }
  item_.clear();
  too_large_ = false;
}

}  // namespace shunt::kube
