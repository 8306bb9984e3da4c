// What the command line of bench_suite asks for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shunt::bench {

struct Options {
  std::vector<std::size_t> sizes{1'000, 10'000, 100'000};  // Services
  std::vector<std::string> parts;  // names of measurements to do; none: all of them
  bool quick = false;              // one run of each, short waits
  std::size_t flips = 300;
  std::string json_file;
  std::string svg_file;
  std::string kube_proxy;  // a binary to compare with
  std::string commit = "unknown";
  bool strict = false;  // a target that is missed is an error

  bool wants(const std::string& part) const;
};

// Nothing: the exit code is in `exit_code`, and what there is to say was said.
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

// "100k" -> 100000.
std::optional<std::size_t> parse_count(const std::string& text);

}  // namespace shunt::bench
