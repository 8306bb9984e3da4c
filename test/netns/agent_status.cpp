#include "netns/agent_status.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>

#include "base/unique_fd.h"

namespace shunt::lab {

using nlohmann::json;

std::optional<json> agent_status(const std::string& socket_path) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return std::nullopt;
  }
  std::string line;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;) {
    line.append(buffer.data(), static_cast<std::size_t>(n));
  }
  json status = json::parse(line, nullptr, false);
  return status.is_object() ? std::optional(std::move(status)) : std::nullopt;
}

bool has_applied(const json& status, std::uint64_t version) {
  if (!status.value("synced", false) || !status.value("idle", false) ||
      !status.contains("resourceVersions")) {
    return false;
  }
  const json& versions = status.at("resourceVersions");
  return std::ranges::all_of(
      std::array{"services", "endpointslices", "nodes", "servicecidrs"}, [&](const char* name) {
        const std::string seen = versions.value(name, "");
        return !seen.empty() && std::stoull(seen) >= version;
      });
}

}  // namespace shunt::lab
