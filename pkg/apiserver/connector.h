// How to reach the API server and with which credentials (spec/api-objects.md §9): in-cluster or
// kubeconfig.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace shunt::apiserver {

// A request that was sent, or could not be: for metrics.
struct RequestSeen {
  std::string_view method;  // "GET"
  std::string_view host;    // of the server: "10.0.0.1:6443"
  std::string_view status;  // "200"; "<error>" when no answer came
  // Until the head of the answer, or the failure. A watch goes on after it.
  std::chrono::steady_clock::duration duration{};
};
// Called on the thread of the request, of which there are several; the views are valid during the
// call only. Once a request, however many connections it took; not when stop was asked, nor when
// there were no credentials to send it with.
using RequestObserver = std::function<void(const RequestSeen&)>;

struct ConnectorOptions {
  std::string kubeconfig;  // "" and no master: in-cluster
  std::string master;      // overrides the server of the kubeconfig
  std::string user_agent = "kube-shunt";
  RequestObserver on_request = {};  // may be empty
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
