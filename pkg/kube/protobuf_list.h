// A protobuf list that is decoded while it arrives: the envelope and the list message inside it are
// walked field by field, and each item is decoded when its last byte is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kube/decoded.h"

namespace shunt::kube::protobuf {

// Walks the two outer messages, runtime.Unknown and the list in its field `raw`, whose pieces
// protozero cannot read: it wants the whole of a message in memory.
class ListCutter {
 public:
  static constexpr std::size_t kMaxRest = std::size_t{1} << 20;
  ListCutter(std::string kind, std::size_t max_item)
      : kind_(std::move(kind)), max_item_(max_item) {}

  // One item; nothing for one above the limit. The view is valid during the call only.
  using OnItem = std::function<void(std::optional<std::string_view>)>;
  Result<> feed(std::string_view piece, const OnItem& on_item);
  Result<ListMeta> finish();

 private:
  enum class State : std::uint8_t { Magic, Tag, Varint, Length, Payload };
  enum class Payload : std::uint8_t { Skip, TypeMeta, ListMeta, Item, Status };

  Result<> take_magic(std::string_view& bytes);
  Result<> take_tag(std::string_view& bytes);
  Result<> take_length(std::string_view& bytes, const OnItem& on_item);
  Result<> take_payload(std::string_view& bytes, const OnItem& on_item);
  Result<> begin_payload(std::uint64_t length, const OnItem& on_item);
  Result<> begin_raw(std::uint64_t length);
  Result<> take_part(std::string_view part, const OnItem& on_item);
  Result<std::optional<std::uint64_t>> take_varint(std::string_view& bytes);
  void skip(std::uint64_t length) { expect(Payload::Skip, length); }
  void expect(Payload payload, std::uint64_t length);
  std::string_view advance(std::string_view& bytes, std::size_t n);
  bool in_list() const { return list_left_.has_value(); }

  std::string kind_;  // that the list must have
  std::size_t max_item_;

  State state_ = State::Magic;
  std::size_t magic_bytes_ = 0;
  std::uint64_t varint_ = 0;  // the unfinished one
  unsigned varint_bytes_ = 0;
  std::uint32_t field_ = 0;
  Payload payload_ = Payload::Skip;
  std::uint64_t payload_left_ = 0;
  std::optional<std::uint64_t> list_left_;  // bytes of the list message that are still to come
  bool list_seen_ = false;
  std::string part_;  // a payload that began in an earlier piece

  std::string found_kind_;
  ListMeta meta_;
};

template <typename T>
class ProtobufListDecoder final : public ListDecoder<T> {
 public:
  explicit ProtobufListDecoder(ListSink<T> sink, std::size_t max_item = kMaxObject);
  Result<> feed(std::string_view piece) override;
  Result<ListMeta> finish() override;

 private:
  void take_item(std::optional<std::string_view> bytes);

  ListSink<T> sink_;
  ListCutter cutter_;
  ListCutter::OnItem on_item_;
  std::size_t index_ = 0;
};

}  // namespace shunt::kube::protobuf
