// A directory that lives as long as a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace shunt::testing {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "shunt-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("mkdtemp");
    }
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  // Replaces it at once, as the kubelet does.
  std::string write(const std::string& name, const std::string& text, bool executable = false) {
    const std::string temporary = path(name + ".new");
    std::ofstream(temporary, std::ios::binary) << text;
    if (executable) {
      std::filesystem::permissions(temporary, std::filesystem::perms::owner_all);
    }
    std::filesystem::rename(temporary, path(name));
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

}  // namespace shunt::testing
