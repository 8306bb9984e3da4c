// gzip as a stream. The real server compresses lists of more than 128 KiB for whoever accepts it,
// so a client that says so and cannot read it must fail here and not in production.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

namespace shunt::test_api {

class Gzip {
 public:
  Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }

  // The compressed bytes that are ready; `last` ends the stream.
  std::string feed(std::string_view piece, bool last = false);

 private:
  z_stream stream_{};
};

}  // namespace shunt::test_api
