#include "config/options.h"

#include <fstream>

#include "config/assemble.h"
#include "config/check.h"
#include "config/config_file.h"
#include "config/fields.h"
#include "config/flags.h"
#include "config/render.h"

namespace shunt::config {
namespace {

constexpr std::size_t kMostViolations = 50;

// One line, however many there are.
Error refused(const std::vector<std::string>& violations) {
  std::string what;
  for (std::size_t i = 0; i < std::min(violations.size(), kMostViolations); ++i) {
    what += i == 0 ? "" : "; ";
    what += violations[i];
  }
  if (violations.size() > kMostViolations) {
    what += "; and " + std::to_string(violations.size() - kMostViolations) + " more";
  }
  return {Errc::Invalid, 0, std::move(what)};
}

std::string text_of(const Settings& flags, std::string_view name) {
  const auto found = flags.find(name);
  return found == flags.end() ? std::string() : std::get<std::string>(found->second);
}

bool said(const Settings& flags, std::string_view name) {
  const auto found = flags.find(name);
  return found != flags.end() && std::get<bool>(found->second);
}

Result<Options> evaluate(const Settings& flags, const std::optional<std::string>& text) {
  ConfigFile file;
  if (text) {
    auto parsed = parse_config_file(*text);
    if (!parsed) {
      const std::string name = text_of(flags, "config");
      return fail(name.empty() ? "configuration" : name, parsed.error());
    }
    file = std::move(*parsed);
  }
  Assembled assembled = assemble(flags, text ? &file : nullptr);
  Checked checked = check(assembled.settings);
  if (!checked.violations.empty()) {
    return tl::unexpected(refused(checked.violations));
  }
  Options options = std::move(checked.options);
  options.config_text = text.value_or("");
  options.warnings = std::move(assembled.warnings);
  options.warnings.insert(options.warnings.end(), checked.warnings.begin(), checked.warnings.end());
  if (!options.route_localnet) {  // which is what it is because nobody has said anything
    assembled.settings.insert_or_assign(
        "kubeShunt.localhostNodePorts", options.localhost_node_ports);
  }
  options.effective_yaml = as_yaml(assembled.settings);
  options.configz = as_configz(assembled.settings);
  options.effective = as_texts(assembled.settings);
  return options;
}

Result<Options> evaluate_with_file(const Settings& flags) {
  const std::string path = text_of(flags, "config");
  if (path.empty()) {
    return evaluate(flags, std::nullopt);
  }
  auto text = read_file(path);
  if (!text) {
    return tl::unexpected(text.error());
  }
  return evaluate(flags, std::move(*text));
}

Result<> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) {
    return fail(Errc::Denied, "--write-config-to: " + path + " cannot be written");
  }
  return {};
}

}  // namespace

std::optional<Millis> parse_duration(std::string_view text) {
  const auto parsed = parse_go_duration(text);
  if (!parsed || parsed->count() < 0) {
    return std::nullopt;
  }
  return std::chrono::floor<Millis>(*parsed);
}

Result<Options> load(const CommandLine& line) {
  auto flags = parse_flags(line.arguments);
  if (!flags) {
    return tl::unexpected(flags.error());
  }
  return evaluate_with_file(*flags);
}

Result<Options> load_text(const CommandLine& line, std::string_view file) {
  auto flags = parse_flags(line.arguments);
  if (!flags) {
    return tl::unexpected(flags.error());
  }
  return evaluate(*flags, std::string(file));
}

Result<Invocation> parse_command_line(int argc, const char* const* argv) {
  Invocation out;
  out.line.arguments.assign(argv + std::min(argc, 1), argv + argc);
  const auto flags = parse_flags(out.line.arguments);
  if (!flags) {
    return tl::unexpected(flags.error());
  }
  if (said(*flags, "help") || said(*flags, "version")) {
    out.exit_code = 0;
    out.text = said(*flags, "help") ? help() : std::string("kube-shunt ") + SHUNT_VERSION + "\n";
    return out;
  }
  auto options = evaluate_with_file(*flags);
  if (!options) {
    return tl::unexpected(options.error());
  }
  out.options = std::move(*options);
  const std::string copy = text_of(*flags, "write-config-to");
  if (!copy.empty()) {
    if (auto written = write_file(copy, out.options.effective_yaml); !written) {
      return tl::unexpected(written.error());
    }
  }
  if (!copy.empty() || said(*flags, "check-config")) {
    out.exit_code = 0;
    out.text = copy.empty() ? out.options.effective_yaml : "";
    for (const std::string& warning : out.options.warnings) {
      out.diagnostics += "warning: " + warning + "\n";
    }
  }
  return out;
}

std::vector<FieldChange> differences(const Options& running, const Options& next) {
  using Application = FieldChange::Application;
  const auto value = [](const Options& options, std::string_view path) {
    const auto found = options.effective.find(std::string(path));
    return found == options.effective.end() ? std::string("null") : found->second;
  };
  std::vector<FieldChange> changes;
  for (const Field& field : fields()) {
    std::string before = value(running, field.path);
    std::string after = value(next, field.path);
    if (before == after) {
      continue;
    }
    const bool at_once = field.path == "logging.format" || field.path == "logging.verbosity";
    const Application application = at_once                          ? Application::AtOnce
                                    : field.effect == Effect::Warned ? Application::Nothing
                                                                     : Application::ByRebuilding;
    changes.push_back({std::string(field.path), std::move(before), std::move(after), application});
  }
  // The host may have another name now.
  if (running.node_name != next.node_name &&
      value(running, "hostnameOverride") == value(next, "hostnameOverride")) {
    changes.push_back(
        {"name of the host", running.node_name, next.node_name, Application::ByRebuilding});
  }
  return changes;
}

}  // namespace shunt::config
