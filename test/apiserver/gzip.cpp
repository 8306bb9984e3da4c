#include "test/apiserver/gzip.h"

#include <new>

namespace shunt::test_api {
namespace {
constexpr int kLevel = 1;             // as the real server: speed before size
constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for a gzip header
constexpr int kMemory = 8;
constexpr std::size_t kPiece = 65536;
}  // namespace

Gzip::Gzip(Sink sink) : sink_(std::move(sink)), out_(kPiece, '\0') {
  const int made =
      deflateInit2(&stream_, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY);
  if (made != Z_OK) {
    throw std::bad_alloc();
  }
}

void Gzip::feed(std::string_view piece) {
  waiting_.append(piece);
  if (waiting_.size() >= kPiece) {
    deflate_all(waiting_, Z_NO_FLUSH);
    waiting_.clear();
  }
}

void Gzip::finish() { deflate_all(waiting_, Z_FINISH); }

void Gzip::deflate_all(std::string_view bytes, int flush) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    (void)deflate(&stream_, flush);  // fails only when misused
    sink_(std::string_view(out_).substr(0, out_.size() - stream_.avail_out));
  } while (stream_.avail_out == 0);
}

}  // namespace shunt::test_api
