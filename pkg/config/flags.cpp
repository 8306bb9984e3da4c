#include "config/flags.h"

#include <algorithm>

#include "config/fields.h"

namespace shunt::config {
namespace {

// What one argument says: a flag, and its value when it has one.
struct Said {
  std::string name;
  std::optional<std::string> value;
};

std::optional<Said> long_flag(std::string_view argument) {
  if (!argument.starts_with("--") || argument.size() == 2) {
    return std::nullopt;
  }
  argument.remove_prefix(2);
  const std::size_t equals = argument.find('=');
  Said said{std::string(argument.substr(0, equals)), std::nullopt};
  std::ranges::replace(said.name, '_', '-');
  if (equals != std::string_view::npos) {
    said.value = argument.substr(equals + 1);
  }
  return said;
}

// Only -v and -h are short.
std::optional<Said> short_flag(std::string_view argument) {
  if (argument == "-h") {
    return Said{"help", std::nullopt};
  }
  if (!argument.starts_with("-v")) {
    return std::nullopt;
  }
  argument.remove_prefix(2);
  if (argument.empty()) {
    return Said{"v", std::nullopt};
  }
  argument.remove_prefix(argument.starts_with('=') ? 1 : 0);
  return Said{"v", std::string(argument)};
}

// An earlier value of the same flag, and a later one.
void merge(Value& into, Value value) {
  if (auto* list = std::get_if<std::vector<std::string>>(&value)) {
    auto& before = std::get<std::vector<std::string>>(into);
    before.insert(before.end(), list->begin(), list->end());
  } else if (auto* gates = std::get_if<Gates>(&value)) {
    gates->merge(std::get<Gates>(into));
    into = std::move(value);
  } else if (auto* modules = std::get_if<std::vector<VerbosityOfFiles>>(&value)) {
    auto& before = std::get<std::vector<VerbosityOfFiles>>(into);
    before.insert(before.end(), modules->begin(), modules->end());
  } else {
    into = std::move(value);
  }
}

Result<> take(Settings& flags, const Said& said, const Field& field) {
  std::string text = said.value.value_or("true");
  if (field.flag == "version" && text == "raw") {
    text = "true";
  }
  auto value = value_of(field.type, text);
  if (!value) {
    const std::string of_file = field.in_file() ? " (" + std::string(field.path) + ")" : "";
    return fail("--" + said.name + of_file, value.error());
  }
  const auto [entry, fresh] = flags.try_emplace(field.flag, *value);
  if (!fresh) {
    merge(entry->second, std::move(*value));
  }
  return {};
}

}  // namespace

Result<Settings> parse_flags(const std::vector<std::string>& arguments) {
  Settings flags;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto said = long_flag(arguments[i]);
    if (!said) {
      said = short_flag(arguments[i]);
    }
    if (!said) {
      return fail(Errc::Invalid, quoted(arguments[i]) + ": not a flag, and only flags are taken");
    }
    const Field* field = find_flag(said->name);
    if (field == nullptr) {
      return fail(Errc::Invalid, quoted(arguments[i]) + ": there is no such flag");
    }
    if (!said->value && field->type != Type::Bool) {
      if (++i == arguments.size()) {
        return fail(Errc::Invalid, "--" + said->name + ": needs a value");
      }
      said->value = arguments[i];
    }
    if (auto taken = take(flags, *said, *field); !taken) {
      return tl::unexpected(taken.error());
    }
  }
  return flags;
}

}  // namespace shunt::config
