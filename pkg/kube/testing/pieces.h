// What decoders of streams and lists make of bytes that come in pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/decoded.h"
#include "kube/service.h"

namespace shunt::kube::testing {

struct Framed {
  std::vector<std::string> frames;
  bool failed = false;
  std::size_t pending = 0;
  bool operator==(const Framed&) const = default;
};

template <typename Framer>
Framed cut(
    std::string_view stream, std::size_t chunk_size, std::size_t max_frame = Framer::kMaxFrame) {
  Framer framer(max_frame);
  Framed out;
  while (!stream.empty() && !out.failed) {
    const auto fed = framer.feed(stream.substr(0, chunk_size), [&](std::string_view frame) {
      out.frames.emplace_back(frame);
      return true;
    });
    out.failed = !fed;
    stream.remove_prefix(std::min(chunk_size, stream.size()));
  }
  out.pending = out.failed ? 0 : framer.pending();  // nobody may use it after an error
  return out;
}

// A list of Services.
struct Listed {
  std::vector<std::string> items;   // names
  std::vector<std::string> issues;  // objects
  Result<ListMeta> meta;
};

template <template <typename> typename Decoder>
Listed read(std::string_view body, std::size_t piece_size, std::size_t max_item = kMaxObject) {
  Listed out;
  Decoder<Service> decoder(
      {.on_item = [&](Service&& item) { out.items.push_back(item.meta.key.name); },
       .on_issue = [&](DecodeIssue&& issue) { out.issues.push_back(issue.object); }},
      max_item);
  while (!body.empty()) {
    if (auto fed = decoder.feed(body.substr(0, piece_size)); !fed) {
      out.meta = tl::unexpected(fed.error());
      return out;
    }
    body.remove_prefix(std::min(piece_size, body.size()));
  }
  out.meta = decoder.finish();
  return out;
}

}  // namespace shunt::kube::testing
