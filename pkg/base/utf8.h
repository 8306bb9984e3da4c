// UTF-8, as far as text of others is passed on.
#pragma once

#include <cstddef>
#include <string_view>

namespace shunt {

// How many bytes the character at the front of `text` has; 0 when there is none: bytes that are no
// UTF-8, an overlong form, a surrogate, beyond U+10FFFF, cut off.
std::size_t utf8_length(std::string_view text);

// The largest place up to `at` that is not inside a character. Text that is no UTF-8 is cut at
// `at`, or at most three bytes before.
std::size_t utf8_boundary(std::string_view text, std::size_t at);

}  // namespace shunt
