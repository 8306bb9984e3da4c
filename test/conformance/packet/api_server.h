// The test API server (test/apiserver) as a child process in the node's namespace, on loopback: the
// agent reaches it over HTTPS, we change objects through its admin port.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "netns/netns.h"
#include "netns/process.h"

namespace shunt::conformance::packet {

// A watch that somebody has open.
struct WatchState {
  std::uint64_t id = 0;  // later ones are larger
  std::string resource;
  bool up_to_date = false;  // everything has been sent
};

class ApiServer {
 public:
  // `pki` is made when absent.
  ApiServer(
      const lab::Netns& where,
      const std::string& program,
      const std::string& pki,
      const std::string& log_file);

  // The store's version afterwards.
  std::uint64_t apply(const std::vector<nlohmann::json>& objects) const;
  std::uint64_t remove(const std::vector<nlohmann::json>& objects) const;
  std::vector<WatchState> watches() const;
  const std::string& kubeconfig() const { return kubeconfig_; }

 private:
  std::uint64_t post_list(
      const std::string& path, const std::vector<nlohmann::json>& objects) const;
  std::string post(const std::string& path, const std::string& body) const;
  void wait_until_it_listens();

  const lab::Netns* where_;
  std::string kubeconfig_;
  lab::Process process_;
};

}  // namespace shunt::conformance::packet
