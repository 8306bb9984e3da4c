// The query of a list or watch, checked as the real server checks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "test/apiserver/request.h"
#include "test/apiserver/status.h"

namespace shunt::test_api {

struct ListOptions {
  bool watch = false;
  std::string labels;
  std::string fields;
  std::string version_text;  // "", "0" or a number: three meanings
  std::uint64_t version = 0;
  bool exact = false;  // resourceVersionMatch=Exact
  std::size_t limit = 0;
  std::string continue_token;
  bool bookmarks = false;
  bool send_initial_events = false;
  std::optional<int> timeout_seconds;

  bool any_version() const { return version_text.empty() || version_text == "0"; }
};

Answer<ListOptions> parse_list_options(const Request& request, bool streaming_lists);

// Where a paged list goes on: the version of its first page and the first key not yet sent.
struct ContinueToken {
  std::uint64_t version = 0;
  std::string start;
};
std::string to_text(const ContinueToken& token);
std::optional<ContinueToken> parse_continue(const std::string& text);

}  // namespace shunt::test_api
