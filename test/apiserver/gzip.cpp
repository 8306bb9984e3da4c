#include "test/apiserver/gzip.h"

#include <array>
#include <new>

namespace shunt::test_api {
namespace {
constexpr int kLevel = 1;             // as the real server: speed before size
constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for a gzip header
constexpr int kMemory = 8;
}  // namespace

Gzip::Gzip() {
  const int made =
      deflateInit2(&stream_, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY);
  if (made != Z_OK) {
    throw std::bad_alloc();
  }
}

std::string Gzip::feed(std::string_view piece, bool last) {
  std::string out;
  std::array<char, 16384> bytes{};
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream_.avail_in = static_cast<uInt>(piece.size());
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(bytes.data());
    stream_.avail_out = bytes.size();
    (void)deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);  // fails only when misused
    out.append(bytes.data(), bytes.size() - stream_.avail_out);
  } while (stream_.avail_out == 0);
  return out;
}

}  // namespace shunt::test_api
