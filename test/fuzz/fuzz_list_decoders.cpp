// Lists that arrive in pieces, in both formats, and gzip. The first byte chooses the target (see
// kTargets), the second the size of the pieces, the rest is the body. Where it is cut must make no
// difference, whatever it holds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/inflate.h"
#include "kube/json_list.h"
#include "kube/protobuf_list.h"
#include "promises.h"

namespace shunt {
namespace {

using fuzz::promise;
using fuzz::promise_plain;

template <typename T>
struct Listed {
  std::vector<T> items;
  std::vector<std::string> issues;
  bool complete = false;
  std::string version;
  bool operator==(const Listed&) const = default;
};

template <typename T, template <typename> typename Decoder>
Listed<T> read(std::string_view body, std::size_t piece_size, std::size_t max_item) {
  Listed<T> out;
  Decoder<T> decoder(
      {.on_item = [&](T&& item) { out.items.push_back(std::move(item)); },
       .on_issue =
           [&](kube::DecodeIssue&& issue) {
             promise_plain(issue);
             out.issues.push_back(issue.object + ": " + issue.what);
           }},
      max_item);
  while (!body.empty()) {
    if (const auto fed = decoder.feed(body.substr(0, piece_size)); !fed) {
      promise_plain(fed.error());
      return out;
    }
    body.remove_prefix(std::min(piece_size, body.size()));
  }
  if (const auto meta = decoder.finish()) {
    out.complete = true;
    out.version = meta->resource_version;
  } else {
    promise_plain(meta.error());
  }
  return out;
}

template <typename T, template <typename> typename Decoder>
void list(std::string_view body, std::size_t piece_size) {
  for (const std::size_t max_item : {kube::kMaxObject, std::size_t{64}}) {
    const auto whole = read<T, Decoder>(body, body.size(), max_item);
    promise(read<T, Decoder>(body, piece_size, max_item) == whole, "pieces make no difference");
    promise(read<T, Decoder>(body, 1, max_item) == whole, "pieces make no difference");
  }
}

struct Inflated {
  std::string text;
  bool failed = false;
  bool complete = false;
  bool operator==(const Inflated&) const = default;
};

Inflated inflate_all(std::string_view bytes, std::size_t piece_size) {
  constexpr std::size_t kEnough = std::size_t{1} << 20;
  apiserver::Inflater inflater;
  Inflated out;
  while (!bytes.empty() && !out.failed) {
    const auto fed = inflater.feed(bytes.substr(0, piece_size), [&](std::string_view piece) {
      promise(piece.size() <= apiserver::Inflater::kPiece, "a piece keeps to its size");
      out.text += piece;
      return out.text.size() < kEnough;
    });
    if (fed && !*fed) {
      out.text.resize(kEnough);
      return out;
    }
    out.failed = !fed;
    bytes.remove_prefix(std::min(piece_size, bytes.size()));
  }
  out.complete = !out.failed && inflater.complete();
  return out;
}

void inflated(std::string_view bytes, std::size_t piece_size) {
  const Inflated whole = inflate_all(bytes, bytes.size());
  const Inflated pieces = inflate_all(bytes, piece_size);
  promise(whole.failed == pieces.failed, "gzip is broken however it arrives");
  promise(whole.failed || whole == pieces, "pieces make no difference");
}

using Target = void (*)(std::string_view, std::size_t);
constexpr Target kTargets[] = {
    &list<kube::Service, kube::JsonListDecoder>,
    &list<kube::EndpointSlice, kube::JsonListDecoder>,
    &list<kube::Service, kube::protobuf::ProtobufListDecoder>,
    &list<kube::EndpointSlice, kube::protobuf::ProtobufListDecoder>,
    &inflated,
};

}  // namespace
}  // namespace shunt

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string_view body(reinterpret_cast<const char*>(data + 2), size - 2);
  shunt::kTargets[data[0] % std::size(shunt::kTargets)](body, data[1] % 64 + 1U);
  return 0;
}
