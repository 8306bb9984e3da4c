// Says when something in a directory may have changed: inotify, as a descriptor to poll.
//
// It watches the directory and not a file in it, because files of interest are replaced rather than
// written: a ConfigMap's files are symlinks through `..data`, which is renamed into place.
//
// One thread.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shunt {

class DirectoryWatch {
 public:
  // Errors name the directory.
  static Result<DirectoryWatch> open(const std::string& directory);

  int fd() const { return inotify_.get(); }  // readable: call take_changes()

  // Whether anything happened since the last call; never waits. What, the caller must look: an
  // overflow of the kernel's queue counts as a change, and so does the end of the directory itself.
  bool take_changes();

 private:
  explicit DirectoryWatch(UniqueFd inotify) : inotify_(std::move(inotify)) {}
  UniqueFd inotify_;
};

}  // namespace shunt
