// Says when the configuration file has other content.
//
// Watched are directories, since a file that matters is replaced and not written: a ConfigMap's is
// a symlink to `..data/NAME`, and `..data` is a symlink that is renamed over. So the directory of
// the file is watched, and those of the files it leads to while it is a symlink, anew after each
// swap. What is not seen is a swap of a directory further up; a ConfigMap has none.
//
// One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/directory_watch.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace shunt::config {

class ConfigFileWatch {
 public:
  // `content` is what the caller has loaded (Options.config_text). Call changed() once after this:
  // the file may be another one by now.
  static Result<ConfigFileWatch> open(std::string path, std::string content);

  int fd() const { return epoll_.get(); }  // readable: call changed()

  // Whether the file now has other bytes than at the last call. A file that is written piece by
  // piece is several changes, the last of which is whole. A file that is gone, or cannot be read,
  // is no change.
  bool changed();

 private:
  ConfigFileWatch() = default;
  void watch_again();

  std::string path_;
  std::string content_;
  std::vector<DirectoryWatch> watches_;
  UniqueFd epoll_;
};

}  // namespace shunt::config
