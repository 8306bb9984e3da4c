// How to reach the API server and with which credentials (spec/api-objects.md §9): in-cluster or
// kubeconfig.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace shunt::apiserver {

struct ConnectorOptions {
  std::string kubeconfig;  // "" and no master: in-cluster
  std::string master;      // overrides the server of the kubeconfig
  std::string user_agent = "kube-shunt";
};

// Thread-safe: reflectors share one.
class Connector {
 public:
  static Result<std::unique_ptr<Connector>> open(ConnectorOptions options);
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  const std::string& server() const;  // "https://host:port", for logs

  class Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Connector(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shunt::apiserver
