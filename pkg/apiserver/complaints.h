// What is wrong with the objects of one resource, told once: an object that is as bad in the next
// list as it was in the last is no news. Pure.
//
// Log lines tell every case; this is for notices, which become Events in the cluster.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kube/decoded.h"
#include "kube/notice.h"

namespace shunt::apiserver {

class Complaints {
 public:
  // More are not told of until a list comes without them: whoever reads notices has enough to do.
  static constexpr std::size_t kMax = 1000;

  explicit Complaints(kube::Notice::Kind kind) : kind_(kind) {}

  // A list begins and ends. What nobody complained of between both is forgotten, so that an object
  // that was mended and breaks again is news.
  void begin_list() { in_list_.clear(); }
  void end_list() { told_ = std::exchange(in_list_, {}); }

  // Nothing when this was told before, or when the object has no full name: a notice is about an
  // object. `uid` may be empty.
  std::optional<kube::Notice> take(const kube::DecodeIssue& issue, std::string_view uid);

 private:
  using Told = std::set<std::pair<std::string, std::string>>;  // object, what is wrong
  kube::Notice::Kind kind_;
  Told told_;
  Told in_list_;
};

}  // namespace shunt::apiserver
