#include "config/config_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>

#include "base/unique_fd.h"
#include "config/fields.h"

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes a variant inside an expected for uninitialized where it is moved from.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace shunt::config {
namespace {

constexpr std::size_t kMostWarnings = 50;
constexpr std::size_t kLongestList = 10'000;

// What a scalar is, by YAML 1.1 as Go's library reads it.
enum class Kind : std::uint8_t { Null, Bool, Integer, Float, Text };

std::optional<bool> yaml_bool(std::string_view text) {
  static constexpr std::string_view kTrue[] = {
      "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
  static constexpr std::string_view kFalse[] = {
      "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
  if (std::ranges::find(kTrue, text) != std::end(kTrue)) {
    return true;
  }
  return std::ranges::find(kFalse, text) != std::end(kFalse) ? std::optional(false) : std::nullopt;
}

bool is_float(std::string_view text) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return false;  // not "inf" and "nan" either
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Kind kind_of(const YAML::Node& node) {
  if (node.IsNull()) {
    return Kind::Null;
  }
  if (node.Tag() != "?") {  // quoted, or tagged by hand
    return Kind::Text;
  }
  const std::string& text = node.Scalar();
  if (yaml_bool(text)) {
    return Kind::Bool;
  }
  if (parse_integer(text)) {
    return Kind::Integer;
  }
  return is_float(text) ? Kind::Float : Kind::Text;
}

Error wrong_type(std::string_view path, Type type) {
  return {Errc::Invalid, 0, std::string(path) + ": " + std::string(must_be(type))};
}

Result<Value> read_scalar(const YAML::Node& node, const Field& field) {
  const Kind kind = node.IsScalar() ? kind_of(node) : Kind::Null;
  const std::string& text = node.IsScalar() ? node.Scalar() : std::string();
  const auto parsed = [&]() -> Result<Value> {
    auto value = value_of(field.type, text);
    return value ? std::move(value) : fail(std::string(field.path), value.error());
  };
  switch (field.type) {
    case Type::String:
      if (kind == Kind::Text) {
        return Value(text);
      }
      break;
    case Type::Bool:
      if (kind == Kind::Bool) {
        return Value(*yaml_bool(text));
      }
      break;
    case Type::Int:
    case Type::Unsigned:
      if (kind == Kind::Integer) {
        return parsed();
      }
      break;
    case Type::Float:
      if (kind == Kind::Integer || kind == Kind::Float) {
        return parsed();
      }
      break;
    case Type::Duration:
      if (kind == Kind::Text) {
        return parsed();
      }
      // Of all durations only this one may be a number of nanoseconds.
      if (kind == Kind::Integer && field.path == "logging.flushFrequency") {
        return Value(Nanos(*parse_integer(text)));
      }
      break;
    case Type::Count:
      if (kind == Kind::Text || kind == Kind::Integer || kind == Kind::Float) {
        return parsed();
      }
      break;
    case Type::List:
    case Type::Gates:
    case Type::Modules:
      break;
  }
  return tl::unexpected(wrong_type(field.path, field.type));
}

Result<Value> read_list(const YAML::Node& node, const Field& field) {
  std::vector<std::string> list;
  if (!node.IsSequence() || node.size() > kLongestList) {
    return tl::unexpected(wrong_type(field.path, field.type));
  }
  for (const YAML::Node& item : node) {
    const bool null = item.IsNull();
    if (!null && (!item.IsScalar() || kind_of(item) != Kind::Text)) {
      return tl::unexpected(wrong_type(field.path, field.type));
    }
    list.push_back(null ? std::string() : item.Scalar());
  }
  return Value(std::move(list));
}

class Reader {
 public:
  Result<> read(const YAML::Node& map, const std::string& section);
  ConfigFile out;

 private:
  Result<> read_entry(const std::string& path, const YAML::Node& value);
  Result<Value> read_value(const YAML::Node& node, const Field& field);
  Result<Value> read_gates(const YAML::Node& node, const Field& field);
  Result<Value> read_modules(const YAML::Node& node, const Field& field);
  Result<VerbosityOfFiles> read_module(const YAML::Node& node, const Field& field);
  void warn(std::string text) {
    if (out.warnings.size() < kMostWarnings) {
      out.warnings.push_back(std::move(text));
    }
  }
};

Result<Value> Reader::read_gates(const YAML::Node& node, const Field& field) {
  Gates gates;
  if (!node.IsMap()) {
    return tl::unexpected(wrong_type(field.path, field.type));
  }
  for (const auto& entry : node) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar() ||
        kind_of(entry.second) != Kind::Bool) {
      return tl::unexpected(wrong_type(field.path, field.type));
    }
    const std::string& name = entry.first.Scalar();
    if (gates.contains(name)) {
      warn("duplicate field " + quoted("featureGates." + name) + ", the last one counts");
    }
    gates[name] = *yaml_bool(entry.second.Scalar());
  }
  return Value(std::move(gates));
}

Result<VerbosityOfFiles> Reader::read_module(const YAML::Node& node, const Field& field) {
  VerbosityOfFiles module;
  if (!node.IsMap()) {
    return tl::unexpected(wrong_type(field.path, field.type));
  }
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
    const YAML::Node& value = entry.second;
    const Kind kind = value.IsScalar() ? kind_of(value) : Kind::Null;
    const auto number = kind == Kind::Integer ? parse_integer(value.Scalar()) : std::nullopt;
    if (name == "filePattern" && kind == Kind::Text) {
      module.pattern = value.Scalar();
    } else if (name == "verbosity" && number && fits(Type::Unsigned, *number)) {
      module.verbosity = static_cast<std::uint32_t>(*number);
    } else if (name == "filePattern" || name == "verbosity") {
      return tl::unexpected(wrong_type(field.path, field.type));
    } else {
      warn("unknown field " + quoted("logging.vmodule[]." + name));
    }
  }
  return module;
}

Result<Value> Reader::read_modules(const YAML::Node& node, const Field& field) {
  std::vector<VerbosityOfFiles> modules;
  if (!node.IsSequence() || node.size() > kLongestList) {
    return tl::unexpected(wrong_type(field.path, field.type));
  }
  for (const YAML::Node& item : node) {
    auto module = read_module(item, field);
    if (!module) {
      return tl::unexpected(module.error());
    }
    modules.push_back(std::move(*module));
  }
  return Value(std::move(modules));
}

Result<Value> Reader::read_value(const YAML::Node& node, const Field& field) {
  switch (field.type) {
    case Type::List:
      return read_list(node, field);
    case Type::Gates:
      return read_gates(node, field);
    case Type::Modules:
      return read_modules(node, field);
    default:
      return read_scalar(node, field);
  }
}

Result<> Reader::read_entry(const std::string& path, const YAML::Node& value) {
  if (const Field* field = find_path(path); field != nullptr && field->in_file()) {
    out.settings.erase(field->path);  // of two, the last counts
    if (value.IsNull()) {
      return {};
    }
    auto read = read_value(value, *field);
    if (!read) {
      return tl::unexpected(read.error());
    }
    out.settings.emplace(field->path, std::move(*read));
    return {};
  }
  if (!is_section(path)) {
    warn("unknown field " + quoted(path));
    return {};
  }
  if (value.IsNull()) {
    return {};
  }
  if (!value.IsMap()) {
    return fail(Errc::Invalid, path + ": must be a map of fields");
  }
  return this->read(value, path + ".");
}

// As deep as the table is, whatever the file looks like: sections are known by name.
Result<> Reader::read(const YAML::Node& map, const std::string& section) {
  std::set<std::string> seen;
  for (const auto& entry : map) {
    if (!entry.first.IsScalar()) {
      return fail(Errc::Invalid, "a name of a field is not text");
    }
    const std::string path = section + entry.first.Scalar();
    if (!seen.insert(path).second) {
      warn("duplicate field " + quoted(path) + ", the last one counts");
    }
    if (path == "apiVersion" || path == "kind") {
      continue;
    }
    if (auto read = read_entry(path, entry.second); !read) {
      return read;
    }
  }
  return {};
}

bool has_text(const YAML::Node& map, const char* name, std::string_view wanted) {
  const YAML::Node node = map[name];
  return node && node.IsScalar() && node.Scalar() == wanted;
}

Result<ConfigFile> parse(const std::string& text) {
  const YAML::Node file = YAML::Load(text);
  if (!file.IsMap() || !has_text(file, "kind", "KubeProxyConfiguration") ||
      !has_text(file, "apiVersion", "kubeproxy.config.k8s.io/v1alpha1")) {
    return fail(
        Errc::Invalid,
        "not a KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1 (kind and apiVersion)");
  }
  Reader reader;
  if (auto read = reader.read(file, ""); !read) {
    return tl::unexpected(read.error());
  }
  return std::move(reader.out);
}

}  // namespace

Result<ConfigFile> parse_config_file(std::string_view text) {
  if (text.size() > kLongestFile) {
    return fail(Errc::Invalid, "longer than a configuration may be");
  }
  try {
    return parse(std::string(text));
  } catch (const YAML::Exception& error) {
    // Its own text may quote the file; where it is, and what is wrong, is enough.
    return fail(
        Errc::Invalid,
        "line " + std::to_string(error.mark.line + 1) + ": " + std::string(quoted(error.msg)));
  }
}

Result<std::string> read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t count = file ? 1 : -1;
  while (count > 0 && text.size() <= kLongestFile) {
    count = ::read(file.get(), buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EINTR) {
      count = 1;
    }
  }
  if (count < 0) {
    const int error = errno;
    return fail(
        error == ENOENT ? Errc::NotFound : Errc::Denied,
        path + ": cannot be read: " + std::strerror(error),
        error);
  }
  if (text.size() > kLongestFile) {
    return fail(Errc::Invalid, path + ": longer than a configuration may be");
  }
  return text;
}

}  // namespace shunt::config
