// The reader of snapshots against arbitrary bytes. With an even first byte the rest is a file; with
// an odd one it is the inside of a file, which gets a head that fits. Crashes and sanitizer reports
// are bugs.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fnv1a.h"
#include "promises.h"
#include "snapshot/archive.h"
#include "snapshot/file.h"
#include "snapshot/objects.h"

namespace shunt::snapshot {
namespace {

using fuzz::promise;

void append_fixed(std::string& out, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) {
    out += static_cast<char>(value >> shift);
  }
}

std::string with_head(std::string_view body) {
  std::string out = "kube-shunt snapshot\n";
  Fnv1a hash;
  hash.bytes(body);
  append_fixed(out, 1);
  append_fixed(out, body.size());
  append_fixed(out, hash.value());
  return out.append(body);
}

// What was read must be what would be written.
template <typename T>
void comes_back(const std::vector<std::shared_ptr<const T>>& objects) {
  Encoder out;
  for (const auto& object : objects) {
    put(out, *object);
  }
  Decoder in(out.bytes());
  for (const auto& object : objects) {
    T again;
    take(in, again);
    promise(in.good() && again == *object, "an object comes back");
  }
  promise(in.at_end(), "nothing is left over");
}

void read(std::string_view file) {
  const auto got = parse(file, "n");
  if (!got) {
    const bool known = got.error().code == Errc::Invalid || got.error().code == Errc::Unsupported;
    promise(known && fuzz::is_one_printable_line(got.error().what), "a refusal says why");
    return;
  }
  comes_back(got->services);
  comes_back(got->slices);
  comes_back(got->service_cidrs);
}

}  // namespace
}  // namespace shunt::snapshot

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  shunt::snapshot::read(data[0] % 2 == 0 ? std::string(bytes) : shunt::snapshot::with_head(bytes));
  return 0;
}
