#include "bench/suite/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

namespace shunt::bench {
namespace {

constexpr char kDescription[] =
    "Measures kube-shunt in network namespaces of this machine, against floors measured in the "
    "same "
    "run. Needs root.";

std::vector<std::size_t> sizes_of(const std::vector<std::string>& texts) {
  std::vector<std::size_t> out;
  for (const std::string& text : texts) {
    const auto count = parse_count(text);
    if (!count || *count < 100 || *count > 200'000) {
      throw CLI::ValidationError("--sizes", text + " is not a number of 100 to 200k");
    }
    out.push_back(*count);
  }
  return out;
}

}  // namespace

bool Options::wants(const std::string& part) const {
  return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::optional<std::size_t> parse_count(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  if (error != std::errc() || (!unit.empty() && unit != "k")) {
    return std::nullopt;
  }
  return unit.empty() ? value : value * 1000;
}

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  Options options;
  std::vector<std::string> sizes;
  CLI::App app{kDescription};
  app.add_option("--sizes", sizes, "numbers of Services, such as 1k,10k,100k")->delimiter(',');
  app.add_option(
         "--parts",
         options.parts,
         "sync, memory, changes, service, burst, restart, foreign, large, connections; all of them")
      ->delimiter(',');
  app.add_flag("--quick", options.quick, "one run of each, short waits, fewer flips");
  app.add_option("--flips", options.flips, "changes of each kind")->check(CLI::Range(10, 100'000));
  app.add_option("--json", options.json_file, "write every figure there");
  app.add_option("--svg", options.svg_file, "draw the picture of the README there");
  app.add_option("--kube-proxy", options.kube_proxy, "a kube-proxy to compare with (nftables mode)")
      ->check(CLI::ExistingFile);
  app.add_option("--commit", options.commit, "what the table says was measured");
  app.add_flag("--strict", options.strict, "exit with 1 when a target is missed");
  try {
    app.parse(argc, argv);
    if (!sizes.empty()) {
      options.sizes = sizes_of(sizes);
    }
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return std::nullopt;
  }
  std::sort(options.sizes.begin(), options.sizes.end());
  if (options.quick && app.count("--flips") == 0) {
    options.flips = 40;
  }
  return options;
}

}  // namespace shunt::bench
