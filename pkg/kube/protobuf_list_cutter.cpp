#include <algorithm>
#include <limits>

#include "kube/protobuf_list.h"
#include "kube/protobuf_objects.h"

namespace shunt::kube::protobuf {
namespace {

// The numbers of the two outer messages.
constexpr std::uint32_t kTypeMetaField = 1;  // runtime.Unknown
constexpr std::uint32_t kRawField = 2;
constexpr std::uint32_t kMetadataField = 1;  // every list
constexpr std::uint32_t kItemsField = 2;

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

tl::unexpected<Error> broken(std::string_view what) {
  return fail(Errc::Invalid, "broken protobuf: " + std::string(what));
}

}  // namespace

// Every byte is looked at once, whatever the pieces. A list that ends exactly at the end of a piece
// is left at once, so that finish() finds nothing open.
Result<> ListCutter::feed(std::string_view piece, const OnItem& on_item) {
  while (!piece.empty()) {
    Result<> step;
    switch (state_) {
      case State::Magic:
        step = take_magic(piece);
        break;
      case State::Tag:
        step = take_tag(piece);
        break;
      case State::Varint:
        if (const auto value = take_varint(piece); !value) {
          step = tl::unexpected(value.error());
        } else if (*value) {
          state_ = State::Tag;
        }
        break;
      case State::Length:
        step = take_length(piece, on_item);
        break;
      case State::Payload:
        step = take_payload(piece, on_item);
        break;
    }
    if (!step) {
      return step;
    }
    if (list_left_ == 0U) {
      if (state_ != State::Tag || varint_bytes_ > 0) {
        return broken("a field runs over the end of the list");
      }
      list_left_.reset();
    }
  }
  return {};
}

std::string_view ListCutter::advance(std::string_view& bytes, std::size_t n) {
  const std::string_view taken = bytes.substr(0, n);
  bytes.remove_prefix(n);
  if (list_left_) {
    *list_left_ -= n;
  }
  return taken;
}

Result<> ListCutter::take_magic(std::string_view& bytes) {
  if (bytes.front() != kMagic[magic_bytes_]) {
    return fail(Errc::Invalid, "not a Kubernetes protobuf object: it does not begin with k8s");
  }
  bytes.remove_prefix(1);
  if (++magic_bytes_ == kMagic.size()) {
    state_ = State::Tag;
  }
  return {};
}

// Nothing while it is unfinished. In a list it ends where the list does, at the latest.
Result<std::optional<std::uint64_t>> ListCutter::take_varint(std::string_view& bytes) {
  while (!bytes.empty() && list_left_ != 0U) {
    const auto byte = static_cast<unsigned char>(advance(bytes, 1).front());
    if (varint_bytes_ == 9 && byte > 1) {
      return broken("a number of more than 64 bits");
    }
    varint_ |= std::uint64_t{byte & 0x7fU} << (7 * varint_bytes_);
    ++varint_bytes_;
    if (byte < 0x80) {
      varint_bytes_ = 0;
      return std::exchange(varint_, 0);
    }
  }
  return std::nullopt;
}

Result<> ListCutter::take_tag(std::string_view& bytes) {
  const auto tag = take_varint(bytes);
  if (!tag) {
    return tl::unexpected(tag.error());
  }
  if (!*tag) {
    return {};
  }
  if (**tag > std::numeric_limits<std::uint32_t>::max() || **tag < 8) {
    return broken("a field with an impossible number");
  }
  field_ = static_cast<std::uint32_t>(**tag >> 3U);
  const auto type = static_cast<WireType>(**tag & 7U);
  if ((field_ == 1 || field_ == 2) && type != WireType::Bytes) {  // all four of those that we read
    return broken("a part of the list has the wrong type");
  }
  switch (type) {
    case WireType::Varint:
      state_ = State::Varint;
      return {};
    case WireType::Fixed64:
      skip(8);
      break;
    case WireType::Fixed32:
      skip(4);
      break;
    case WireType::Bytes:
      state_ = State::Length;
      return {};
    default:
      return broken("a field of an unknown wire type");
  }
  return list_left_ && payload_left_ > *list_left_ ? broken("a field runs over the end of the list")
                                                   : Result<>{};
}

void ListCutter::expect(Payload payload, std::uint64_t length) {
  payload_ = payload;
  payload_left_ = length;
  state_ = State::Payload;
}

Result<> ListCutter::take_length(std::string_view& bytes, const OnItem& on_item) {
  const auto length = take_varint(bytes);
  if (!length) {
    return tl::unexpected(length.error());
  }
  if (!*length) {
    return {};
  }
  if (list_left_ && **length > *list_left_) {
    return broken("a field runs over the end of the list");
  }
  return begin_payload(**length, on_item);
}

Result<> ListCutter::begin_payload(std::uint64_t length, const OnItem& on_item) {
  if (in_list() && field_ == kItemsField) {
    if (length > max_item_) {
      on_item(std::nullopt);
      skip(length);
    } else {
      expect(Payload::Item, length);
    }
  } else if (!in_list() && field_ == kRawField) {
    if (auto begun = begin_raw(length); !begun || state_ == State::Tag) {
      return begun;
    }
  } else if (in_list() ? field_ == kMetadataField : field_ == kTypeMetaField) {
    if (length > kMaxRest) {
      return fail(Errc::Invalid, "not a list: more than 1 MiB beside its items");
    }
    expect(in_list() ? Payload::ListMeta : Payload::TypeMeta, length);
  } else {
    skip(length);
  }
  // Nothing more has to come for an empty one.
  return payload_left_ == 0 ? take_part({}, on_item) : Result<>{};
}

// What the envelope said so far decides what this is. It names the kind first; when it does not,
// the items are read as what was asked for, and finish() judges.
Result<> ListCutter::begin_raw(std::uint64_t length) {
  if (found_kind_ == "Status") {
    expect(Payload::Status, std::min<std::uint64_t>(length, kMaxRest));
    return {};
  }
  if (!found_kind_.empty() && found_kind_ != kind_) {
    return fail(Errc::Invalid, "not a list: kind \"" + excerpt(found_kind_) + "\"");
  }
  if (list_seen_) {
    return fail(Errc::Invalid, "not a list: two of them");
  }
  list_seen_ = true;
  state_ = State::Tag;
  if (length > 0) {
    list_left_ = length;
  }
  return {};
}

Result<> ListCutter::take_payload(std::string_view& bytes, const OnItem& on_item) {
  const std::string_view piece = advance(
      bytes, static_cast<std::size_t>(std::min<std::uint64_t>(payload_left_, bytes.size())));
  payload_left_ -= piece.size();
  if (payload_ == Payload::Skip) {
    state_ = payload_left_ == 0 ? State::Tag : state_;
    return {};
  }
  if (payload_left_ > 0) {
    part_ += piece;
    return {};
  }
  if (part_.empty()) {
    return take_part(piece, on_item);
  }
  part_ += piece;
  auto taken = take_part(part_, on_item);
  part_.clear();
  return taken;
}

Result<> ListCutter::take_part(std::string_view part, const OnItem& on_item) {
  state_ = State::Tag;
  switch (payload_) {
    case Payload::Skip:
      return {};
    case Payload::Item:
      on_item(part);
      return {};
    case Payload::TypeMeta:
      if (const auto mistake = caught([&] { found_kind_ = read_type_meta(Message(part)).kind; })) {
        return fail(Errc::Invalid, "not a list: typeMeta: " + *mistake);
      }
      return {};
    case Payload::ListMeta:
      if (const Findings findings = read_object(part, meta_); findings.mistake) {
        return fail(Errc::Invalid, "not a list: metadata: " + *findings.mistake);
      }
      return {};
    case Payload::Status: {
      ApiStatus status;
      (void)read_object(part, status);  // half of it says more than nothing
      return fail(
          Errc::Invalid,
          "a Status instead of a list: " + excerpt(status.reason) + ": " +
              excerpt(status.message, 200));
    }
  }
  return {};
}

Result<ListMeta> ListCutter::finish() {
  const bool between_fields = state_ == State::Tag && varint_bytes_ == 0 && !in_list();
  if (state_ == State::Magic || (between_fields && found_kind_.empty() && !list_seen_)) {
    return fail(Errc::Invalid, "list: an empty or unfinished protobuf object");
  }
  if (!between_fields) {
    return fail(Errc::Invalid, "list: broken protobuf: it ends too early");
  }
  if (found_kind_ != kind_) {
    return fail(Errc::Invalid, "not a list: kind \"" + excerpt(found_kind_) + "\"");
  }
  if (!list_seen_) {
    return fail(Errc::Invalid, "not a list: there is none in it");
  }
  return std::move(meta_);
}

}  // namespace shunt::kube::protobuf
