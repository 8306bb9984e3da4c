// Names that the server makes up: uids, tokens, generateName suffixes; and the time as the API
// writes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shunt::test_api {

std::string uuid(std::uint64_t a, std::uint64_t b);  // version 4, of these bits
std::string new_uid();                               // a random one
std::string random_hex(int digits);                  // bearer tokens
std::string random_suffix();                         // five characters, as generateName appends
std::string now_rfc3339();                           // "2026-11-29T16:44:49Z"

std::string base64url(std::string_view bytes);                   // without padding
std::string base64url_decoded(std::string_view text, bool& ok);  // ok=false: not base64url

}  // namespace shunt::test_api
