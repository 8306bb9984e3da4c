// A directory of manifests that lives as long as a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace shunt::manifests::testing {

class Files {
 public:
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "shunt-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("mkdtemp");
    }
    path_ = name;
  }
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::string path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Replaced at once, as the kubelet does.
  void write(const std::string& name, const std::string& text) const {
    write_in_place(name + ".new", text);
    std::filesystem::rename(path(name + ".new"), path(name));
  }
  void write_in_place(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  // Written by somebody whose clock is an hour ahead: nothing says that it was a moment ago.
  void write_old(const std::string& name, const std::string& text) const {
    write(name, text);
    std::filesystem::last_write_time(
        path(name), std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  }
  void remove(const std::string& name) const { std::filesystem::remove(path(name)); }

 private:
  std::string path_;
};

// A Service in namespace default, on 10.0.0.<host>: JSON, which is YAML as well.
inline std::string service(const std::string& name, int host) {
  return R"({"kind":"Service","apiVersion":"v1","metadata":{"name":")" + name +
         R"("},"spec":{"clusterIP":"10.0.0.)" + std::to_string(host) + "\"}}\n";
}

}  // namespace shunt::manifests::testing
