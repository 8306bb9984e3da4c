// The table of every field of kube-proxy's KubeProxyConfiguration, every flag of kube-proxy, and
// our own: what reads the file, reads flags, fills in defaults, prints what is in effect, names
// what a reload changes and writes FIELDS.md goes through it. A setting is added here, and where
// check.cpp puts it into Options.
#pragma once

#include <span>
#include <string_view>

#include "config/value.h"

namespace shunt::config {

enum class Effect : std::uint8_t {
  Honoured,
  Warned  // accepted; a warning says that it does nothing, when it is not the default
};

// What the zero value of Go's type (0, "", null) in a file stands for. Where Go has a pointer, only
// null stands for the default, and a zero is meant.
enum class Zero : std::uint8_t { Itself, Default };

// With --config, kube-proxy ignores a flag that has a field; some count always, and win.
enum class FlagRule : std::uint8_t { WithoutFile, Always };

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which a row is read
struct Field {
  std::string_view path;  // in the file; "--name" for what only a flag says
  std::string_view flag;  // "" for none; two fields may share one
  Type type;
  std::string_view fallback;  // as a flag would say it. Bool without a text: unset stays unset
  Zero zero;
  FlagRule rule;
  Effect effect;
  std::string_view note;  // what it does; why it does nothing. Also the help of the flag

  bool in_file() const { return !path.starts_with("--"); }
};

std::span<const Field> fields();
const Field* find_path(std::string_view path);
// The first of those with this flag.
const Field* find_flag(std::string_view name);
// Whether fields of the file stand below this path ("conntrack").
bool is_section(std::string_view path);

// Every field and every flag as a page of Markdown: FIELDS.md.
std::string fields_page();
// What --help prints.
std::string help();

}  // namespace shunt::config
