// Who we are and whom we trust, at this moment: reads the sources of an Access again as they change
// (spec/api-objects.md §9).
//
// - token file: read again when the copy is older than 50 s, and after a 401; while it cannot be
//   read, or is empty, the last good token stays.
// - CA, client certificate and key files: read again for every request (they are few: a list, or a
//   watch of minutes); while they are unreadable or make no sense together, the last good ones
//   stay.
// - exec plugin: run again when its credential expired, and after a 401.
//
// On plain http (test servers on loopback) there are no credentials at all.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "apiserver/access.h"
#include "apiserver/exec_plugin.h"
#include "apiserver/tls_context.h"
#include "base/backoff.h"

namespace shunt::apiserver {

struct Identity {
  std::shared_ptr<const TlsContext> tls;  // null on plain http
  Headers headers;                        // Authorization, Impersonate-*
  std::uint64_t generation = 0;           // another one: another identity
};

struct TimeSource {
  std::function<Clock::time_point()> now = [] { return Clock::now(); };
  std::function<std::int64_t()> unix_seconds = [] {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
};

// Thread-safe.
class Credentials {
 public:
  // Reads everything but the plugin once, so that what is wrong from the start is an error here.
  static Result<std::unique_ptr<Credentials>> open(Access access, TimeSource time = {});

  // May run the exec plugin; others wait for it meanwhile. Errors: ECANCELED when `stop_fd` became
  // readable.
  Result<std::shared_ptr<const Identity>> current(int stop_fd);

  // The server answered 401 to that generation.
  void refused(std::uint64_t generation);

  const Access& access() const { return access_; }

 private:
  Credentials(Access access, TimeSource time);

  Result<> read_files(bool first);
  Result<> read_token(bool first);
  bool plugin_is_due() const;
  Result<> use_plugin(std::unique_lock<std::mutex>& lock, int stop_fd);
  Result<> rebuild();
  Headers headers() const;

  const Access access_;
  const TimeSource time_;

  std::mutex mutex_;
  std::condition_variable plugin_done_;
  bool plugin_runs_ = false;
  TlsMaterial files_;            // as last read and found good
  std::string files_complaint_;  // logged already
  std::string token_;
  Clock::time_point token_read_{};
  bool token_refused_ = false;
  std::optional<ExecCredential> plugin_;
  std::shared_ptr<const Identity> identity_;
  TlsMaterial tls_material_;  // of identity_
};

}  // namespace shunt::apiserver
