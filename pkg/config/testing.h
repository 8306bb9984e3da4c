// For the tests of this folder.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "config/options.h"

namespace shunt::config::testing {

inline Result<Invocation> parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "kube-shunt");
  std::vector<const char*> argv;
  argv.reserve(arguments.size());
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

// Fields below the head that every file has, on a node "n".
inline std::string with_head(const std::string& fields) {
  return "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n" + fields;
}
inline Result<Options> load_fields(
    const std::string& fields, std::vector<std::string> arguments = {}) {
  arguments.emplace_back("--hostname-override=n");
  return load_text({std::move(arguments)}, with_head(fields));
}

// What an error says, or "" without one.
template <typename T>
std::string error_of(const Result<T>& result) {
  return result ? std::string() : result.error().what;
}
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
// Whether a warning says all of it.
inline bool warned(const Options& options, const std::string& part) {
  for (const std::string& warning : options.warnings) {
    if (has(warning, part)) {
      return true;
    }
  }
  return false;
}

inline std::string content_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// A file that goes with this.
class File {
 public:
  explicit File(const std::string& content) {
    char name[] = "/tmp/kube-shunt-config-XXXXXX";
    const UniqueFd made(::mkstemp(name));
    path = name;
    std::ofstream(path) << content;
  }
  ~File() { (void)std::remove(path.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path;
};

}  // namespace shunt::config::testing
