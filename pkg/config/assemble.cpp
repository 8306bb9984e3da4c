#include "config/assemble.h"

#include "config/fields.h"

namespace shunt::config {
namespace {

bool is_empty_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && text->empty();
}

// Flags for which an empty value is as good as none.
bool means_nothing(const Field& field, const Value& value) {
  return is_empty_text(value) &&
         (field.path == "bindAddress" || field.path == "healthzBindAddress" ||
          field.path == "metricsBindAddress" || field.path == "hostnameOverride" ||
          field.path == "detectLocalMode");
}

void take_file(const ConfigFile& file, Assembled& out) {
  out.warnings = file.warnings;
  for (const auto& [path, value] : file.settings) {
    if (find_path(path)->zero == Zero::Itself || !is_zero(value)) {
      out.settings.emplace(path, value);
    }
  }
}

// A flag beside a file that can say the same.
void take_beside_file(const Field& field, const Value& value, Assembled& out) {
  // Ours: a file without clientConnection.kubeconfig may leave it to the flag.
  if (field.path == "clientConnection.kubeconfig") {
    const auto [entry, fresh] = out.settings.try_emplace(field.path, value);
    if (fresh || is_empty_text(entry->second)) {
      entry->second = value;
      return;
    }
  }
  if (find_flag(field.flag) == &field) {  // once for fields that share it
    out.warnings.push_back("--" + std::string(field.flag) + ": ignored, since --config is given");
  }
}

void take_flag(const Field& field, const Value& value, bool beside_file, Assembled& out) {
  if (means_nothing(field, value)) {
    return;
  }
  if (beside_file && field.rule == FlagRule::WithoutFile) {
    take_beside_file(field, value, out);
    return;
  }
  const auto [entry, fresh] = out.settings.try_emplace(field.path, value);
  if (const auto* mine = std::get_if<std::vector<VerbosityOfFiles>>(&value); mine && !fresh) {
    auto& both = std::get<std::vector<VerbosityOfFiles>>(entry->second);
    both.insert(both.begin(), mine->begin(), mine->end());
  } else {
    entry->second = value;
  }
}

void take_defaults(Settings& settings) {
  for (const Field& field : fields()) {
    const bool stays_unset = field.type == Type::Bool && field.fallback.empty();
    if (!stays_unset && !settings.contains(field.path)) {
      settings.emplace(field.path, value_of(field.type, field.fallback).value());
    }
  }
}

// The address of a server with its port. `deprecated_port` is the flag of old.
void complete_address(
    Settings& settings,
    const char* path,
    const char* ipv4,
    const char* ipv6,
    std::int64_t port,
    bool deprecated_port) {
  auto& text = std::get<std::string>(settings.at(path));
  if (deprecated_port && port == 0) {
    text.clear();
    return;
  }
  const auto bind = net::parse_ip(get<std::string>(settings, "bindAddress"));
  if (text.empty()) {
    text = bind && bind->family == net::Family::IPv6 ? ipv6 : ipv4;
  } else if (const auto ip = net::parse_ip(text)) {
    const bool v6 = text.find(':') != std::string::npos;
    text = (v6 ? "[" + text + "]:" : text + ":") + std::to_string(port);
  }
}

void complete(Settings& settings, bool with_file) {
  const bool old_flags = !with_file && get<std::string>(settings, "--write-config-to").empty();
  const auto port_of = [&](const char* flag, std::int64_t fallback) {
    return old_flags ? get<std::int64_t>(settings, flag) : fallback;
  };
  complete_address(
      settings,
      "healthzBindAddress",
      "0.0.0.0:10256",
      "[::]:10256",
      port_of("--healthz-port", 10'256),
      old_flags);
  complete_address(
      settings,
      "metricsBindAddress",
      "127.0.0.1:10249",
      "[::1]:10249",
      port_of("--metrics-port", 10'249),
      old_flags);
  auto& node_ports = std::get<std::vector<std::string>>(settings.at("nodePortAddresses"));
  if (node_ports.empty() && get<std::string>(settings, "mode") == "nftables") {
    node_ports.emplace_back("primary");
  }
}

bool is_default(const Field& field, const Value& value) {
  const auto fallback = value_of(field.type, field.fallback);
  return fallback && *fallback == value;
}

// Whether the mode makes use of a field. Modes share some fields of a section (spec/config.md §1).
bool counts_for(Mode mode, std::string_view path) {
  const std::string_view counts = section_of(mode);
  for (const std::string_view section : {"iptables", "ipvs", "nftables"}) {
    if (path.starts_with(section) && path.substr(section.size()).starts_with('.')) {
      return section == counts || path == "ipvs.excludeCIDRs" ||
             (mode == Mode::Ipvs &&
              (path == "iptables.masqueradeBit" || path == "iptables.masqueradeAll"));
    }
  }
  return true;
}

// What was said and does nothing.
void warn_of_no_effect(const ConfigFile* file, Assembled& out) {
  const Mode mode = mode_of(get<std::string>(out.settings, "mode"));
  for (const Field& field : fields()) {
    const auto found = out.settings.find(field.path);
    if (found == out.settings.end() || is_default(field, found->second)) {
      continue;
    }
    const std::string name(field.in_file() ? field.path : "--" + std::string(field.flag));
    const bool said = file == nullptr ? field.flag.starts_with("ipvs-")  // no mode shares those
                                      : file->settings.contains(field.path);
    if (field.effect == Effect::Warned) {
      out.warnings.push_back(name + ": has no effect here: " + std::string(field.note));
    } else if (said && !counts_for(mode, field.path)) {
      out.warnings.push_back(
          name + ": has no effect, since the section " + std::string(section_of(mode)) +
          " counts for this mode");
    }
  }
}

}  // namespace

Mode mode_of(std::string_view word) {
  return word == "nftables"   ? Mode::Nftables
         : word == "iptables" ? Mode::Iptables
         : word == "ipvs"     ? Mode::Ipvs
                              : Mode::Auto;
}

std::string_view section_of(Mode mode) {
  return mode == Mode::Nftables ? "nftables" : mode == Mode::Ipvs ? "ipvs" : "iptables";
}

Assembled assemble(const Settings& flags, const ConfigFile* file) {
  Assembled out;
  if (file != nullptr) {
    take_file(*file, out);
  }
  for (const Field& field : fields()) {
    if (const auto found = flags.find(field.flag); found != flags.end()) {
      take_flag(field, found->second, file != nullptr, out);
    }
  }
  take_defaults(out.settings);
  complete(out.settings, file != nullptr);
  warn_of_no_effect(file, out);
  return out;
}

}  // namespace shunt::config
