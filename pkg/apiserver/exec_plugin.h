// Exec credential plugins: client.authentication.k8s.io/v1 and v1beta1 (spec/api-objects.md §9).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apiserver/access.h"
#include "base/result.h"

namespace shunt::apiserver {

struct ExecCredential {
  std::string token;
  std::string certificate;              // PEM
  std::string key;                      // PEM
  std::optional<std::int64_t> expires;  // Unix time; nothing: good until the server says 401
};

// What the plugin reads in KUBERNETES_EXEC_INFO. Pure. `ca` is the PEM of the cluster's CA.
std::string exec_info(const ExecPlugin& plugin, const Access& access, const std::string& ca);

// What the plugin wrote. Pure. No error holds any of `text`.
Result<ExecCredential> parse_exec_credential(
    const std::string& text, const std::string& api_version);

// Runs access.exec for up to a minute, or until `stop_fd` is readable.
Result<ExecCredential> run_exec_plugin(const Access& access, const std::string& ca, int stop_fd);

}  // namespace shunt::apiserver
