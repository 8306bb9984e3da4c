#include "apiserver/inflate.h"

#include <new>

namespace shunt::apiserver {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;  // zlib's way to say: no other header than gzip's

}  // namespace

Inflater::Inflater() : out_(kPiece) {
  if (inflateInit2(&stream_, kGzipOnly) != Z_OK) {
    throw std::bad_alloc();  // nothing else can go wrong; like any lack of memory it ends us
  }
}

Inflater::~Inflater() { (void)inflateEnd(&stream_); }

Result<bool> Inflater::feed(
    std::string_view bytes, const std::function<bool(std::string_view)>& on_piece) {
  // zlib's interface is older than const.
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  bool more = true;  // output that did not fit may be waiting when the input is used up
  while (stream_.avail_in > 0 || more) {
    if (complete_) {
      if (stream_.avail_in == 0) {
        break;
      }
      (void)inflateReset(&stream_);  // fails only for a stream that was never set up
      complete_ = false;
    }
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      return fail(Errc::Invalid, "the gzip body of the answer is corrupt");
    }
    complete_ = code == Z_STREAM_END;
    const std::size_t produced = out_.size() - stream_.avail_out;
    more = stream_.avail_out == 0;
    if (produced > 0 && !on_piece({out_.data(), produced})) {
      return false;
    }
    if (code == Z_BUF_ERROR) {
      break;  // it wants more bytes
    }
  }
  return true;
}

}  // namespace shunt::apiserver
