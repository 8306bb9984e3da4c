// The reader of manifests against arbitrary bytes. The first byte chooses YAML or JSON, the rest is
// the file. Crashes and sanitizer reports are bugs, and so is a broken promise of manifest.h: those
// abort in `promise`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "manifests/defaults.h"
#include "manifests/manifest.h"
#include "promises.h"

namespace shunt::manifests {
namespace {

using fuzz::promise;

template <typename T>
void usable(const std::vector<std::shared_ptr<const T>>& objects) {
  for (const auto& object : objects) {
    T again = *object;
    apply_defaults(again);
    promise(again == *object, "defaults are applied once and for all");
    const auto lacks = lacks_of(*object);
    promise(
        std::ranges::none_of(lacks, [](const Lack& lack) { return lack.set_aside; }),
        "an object that cannot be used is set aside");
  }
}

void read(std::string_view text, Format format) {
  const auto got = parse_manifest(text, format);
  if (!got) {
    fuzz::promise_plain(got.error());
    promise(got.error().what.starts_with("line "), "an error has a line");
    return;
  }
  usable(got->objects.services);
  usable(got->objects.slices);
  usable(got->objects.nodes);
  usable(got->objects.service_cidrs);
  promise(got->complaints.size() <= 101, "complaints are bounded");
  const auto again = parse_manifest(text, format);
  promise(again && again->objects.size() == got->objects.size(), "reading has no memory");
}

}  // namespace
}  // namespace shunt::manifests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  using shunt::manifests::Format;
  shunt::manifests::read(text, data[0] % 2 == 0 ? Format::Yaml : Format::Json);
  return 0;
}
