// The configuration file against arbitrary bytes, as --config would read them. Promised: options,
// or an error that is one short line; and options that print themselves as a file that says the
// same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/options.h"
#include "promises.h"

namespace shunt::config {
namespace {

using fuzz::is_one_printable_line;
using fuzz::promise;

const CommandLine& line() {
  static const CommandLine node{{"--hostname-override=n"}};
  return node;
}

void file(std::string_view text) {
  const auto got = load_text(line(), text);
  if (!got) {
    promise(
        got.error().code == Errc::Invalid || got.error().code == Errc::Unsupported,
        "a wrong file is wrong for ever");
    promise(
        !got.error().what.empty() && is_one_printable_line(got.error().what) &&
            got.error().what.size() < 20'000,
        "an error is one line");
    return;
  }
  for (const std::string& warning : got->warnings) {
    promise(is_one_printable_line(warning), "a warning is one line");
  }
  const auto again = load_text(line(), got->effective_yaml);
  promise(again.has_value(), "what is in effect can be loaded");
  promise(differences(*got, *again).empty(), "what is in effect says the same");
}

}  // namespace
}  // namespace shunt::config

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shunt::config::file({reinterpret_cast<const char*>(data), size});
  return 0;
}
