#include "runner/logs.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace shunt::conformance {

std::string make_logs_directory() {
  std::string name = std::filesystem::temp_directory_path() / "shunt-conformance-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a directory like " + name);
  }
  return name;
}

void remove_logs_directory(const std::string& directory) {
  std::error_code ignored;  // what is left behind is in the system's directory for such things
  std::filesystem::remove_all(directory, ignored);
}

}  // namespace shunt::conformance
