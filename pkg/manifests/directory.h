// A directory of manifests and what it gave: *.yaml, *.yml and *.json, not below it; names that
// begin with a dot are not looked at. Files that did not change on disk are not read again.
//
// A file that cannot be read, or is no YAML or JSON, keeps what it last gave. Of two files with the
// same object the first by name wins. Files are regular ones (or symlinks to them) of kMaxFile at
// most.
//
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "manifests/manifest.h"

namespace shunt::manifests {

class Directory {
 public:
  explicit Directory(std::string path) : path_(std::move(path)) {}

  struct Look {
    bool changed = false;  // objects() may be others than before
    // What is wrong and was not said before, a line each: "web.yaml: line 3: ...".
    std::vector<std::string> news;
    // A file was written a moment ago, and a further write might not show: look again soon.
    bool unsettled = false;
  };
  // Errors when the directory cannot be listed; everything is as it was then.
  Result<Look> look();

  const Objects& objects() const { return objects_; }  // each key once
  std::size_t files() const { return files_.size(); }

 private:
  // What tells whether a file is the one that was read.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = -1;  // -1: never read
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct File {
    Stamp stamp;
    std::optional<std::uint64_t> content;  // a hash of what `objects` are made of
    Objects objects;
    std::set<std::string> said;
  };

  // Whether the file gives other objects than before.
  bool refresh(const std::string& name, File& file, Look& look) const;
  void merge(Look& look);

  std::string path_;
  std::map<std::string, File> files_;  // by name
  Objects objects_;
  std::set<std::string> doubles_said_;
};

}  // namespace shunt::manifests
