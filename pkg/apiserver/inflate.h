// gzip bodies, decompressed as they arrive. The one user of zlib.
//
// Memory stays the same whatever the body claims to be: what comes out is handed on in pieces of
// kPiece at most, and the reader of those has limits of its own. A body of zeros is then only slow.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shunt::apiserver {

class Inflater {
 public:
  static constexpr std::size_t kPiece = std::size_t{64} << 10;

  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;  // zlib remembers where its state is
  Inflater& operator=(const Inflater&) = delete;

  // `on_piece` returns false to stop; the answer is then false, too. After an error (Errc::Invalid)
  // the inflater is unusable.
  Result<bool> feed(std::string_view bytes, const std::function<bool(std::string_view)>& on_piece);

  // The bytes so far end where gzip data may end. They may be several members, as in a file.
  bool complete() const { return complete_; }

 private:
  z_stream stream_{};
  std::vector<char> out_;
  bool complete_ = false;
};

}  // namespace shunt::apiserver
