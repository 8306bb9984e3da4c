// gzip as a stream. The real server compresses lists of more than 128 KiB for whoever accepts it,
// so a client that says so and cannot read it must fail here and not in production.
#pragma once

#include <zlib.h>

#include <functional>
#include <string>
#include <string_view>

namespace shunt::test_api {

class Gzip {
 public:
  using Sink = std::function<void(std::string_view bytes)>;
  explicit Gzip(Sink sink);
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }

  void feed(std::string_view piece);
  void finish();  // ends the stream

 private:
  void deflate_all(std::string_view bytes, int flush);

  const Sink sink_;
  z_stream stream_{};
  std::string waiting_;  // small pieces are gathered: each call of deflate has its price
  std::string out_;
};

}  // namespace shunt::test_api
