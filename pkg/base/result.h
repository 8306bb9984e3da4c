// How every fallible function of kube-shunt answers: a value, or an Error that says what the caller
// does next.
//
// A failing kernel or network is ordinary here, so failure belongs in the signature. std::expected
// needs C++23; tl::expected has the same interface, so moving later is this one `using`.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace shunt {

// Named for what the caller does next.
enum class Errc : std::uint8_t {
  NotFound,     // often fine: the verb was idempotent
  Exists,       // often fine: the verb was idempotent
  Again,        // try the same later (EBUSY, EINTR, 429, 5xx)
  Stale,        // our picture is wrong: re-read first (ENOENT in a batch, HTTP 410)
  Invalid,      // retrying cannot help: the input is wrong
  Unsupported,  // retrying cannot help: this kernel or server lacks the feature
  Denied,       // retrying cannot help until somebody grants it (EPERM, 401, 403)
};

struct Error {
  Errc code = Errc::Invalid;
  int sys_errno = 0;  // 0 when no system call failed
  std::string what;   // one line, no secret in it
};

template <typename T = void>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Errc code, std::string what, int sys_errno = 0) {
  return tl::unexpected<Error>(Error{code, sys_errno, std::move(what)});
}

// Adds context in front: "services: connection refused".
inline tl::unexpected<Error> fail(std::string context, Error error) {
  error.what = std::move(context) + ": " + error.what;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace shunt
