#include "packet/api_server.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "netns/plain_http.h"

namespace shunt::conformance::packet {
namespace {

constexpr const char* kListen = "127.0.0.1:6443";
constexpr const char* kAdmin = "127.0.0.1:6080";

net::SocketAddress admin() { return net::parse_socket_address(kAdmin).value(); }

}  // namespace

ApiServer::ApiServer(
    const lab::Netns& where,
    const std::string& program,
    const std::string& pki,
    const std::string& log_file)
    : where_(&where),
      kubeconfig_(pki + "/kubeconfig"),
      process_(
          where,
          {{program, "--listen", kListen, "--insecure-listen", kAdmin, "--pki", pki},
           {},
           log_file}) {
  wait_until_it_listens();
}

void ApiServer::wait_until_it_listens() {
  for (int tries = 0; tries < 2000; ++tries) {
    if (!process_.running()) {
      break;
    }
    const bool listens = lab::plain_http(*where_, admin(), "GET", "/healthz").status != 0;
    if (listens) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw std::runtime_error("the test API server does not listen");
}

std::string ApiServer::post(const std::string& path, const std::string& body) const {
  lab::HttpAnswer answer = lab::plain_http(*where_, admin(), "POST", path, body);
  if (answer.status != 200) {
    throw std::runtime_error("the test API server refused " + path + ": " + answer.body);
  }
  return std::move(answer.body);
}

std::uint64_t ApiServer::post_list(
    const std::string& path, const std::vector<nlohmann::json>& objects) const {
  const nlohmann::json list{{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}};
  const nlohmann::json answer = nlohmann::json::parse(post(path, list.dump()));
  return std::stoull(answer.at("resourceVersion").get<std::string>());
}

std::uint64_t ApiServer::apply(const std::vector<nlohmann::json>& objects) const {
  return post_list("/_test/apply?bookmark=true", objects);
}

std::uint64_t ApiServer::remove(const std::vector<nlohmann::json>& objects) const {
  return post_list("/_test/delete?bookmark=true", objects);
}

std::vector<WatchState> ApiServer::watches() const {
  const auto answer = lab::plain_http(*where_, admin(), "GET", "/_test/watches");
  const nlohmann::json body = nlohmann::json::parse(answer.body);
  std::vector<WatchState> watches;
  for (const nlohmann::json& watch : body.at("watches")) {
    watches.push_back({watch.at("id"), watch.at("resource"), watch.at("upToDate")});
  }
  return watches;
}

}  // namespace shunt::conformance::packet
