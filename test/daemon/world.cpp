#include "daemon/world.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "netns/agent_status.h"
#include "netns/plain_http.h"

namespace shunt::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr char kAdmin[] = "127.0.0.1:8080";
constexpr char kServer[] = "127.0.0.1:6443";

std::string make_directory() {
  char name[] = "/tmp/kube-shunt-test-XXXXXX";
  if (::mkdtemp(name) == nullptr) {
    throw std::runtime_error("no temporary directory");
  }
  return name;
}

json node_object() {
  json addresses = json::array();
  for (const char* ip : {"10.80.0.10", "fd80::10"}) {
    addresses.push_back({{"type", "InternalIP"}, {"address", ip}});
  }
  return {
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", {{"name", "edge-a"}}},
      {"status", {{"addresses", addresses}}}};
}

}  // namespace

lab::LabSpec World::shared_pods() {
  lab::LabSpec spec = lab::default_lab_spec();
  spec.shared_pods = {
      net::parse_cidr("10.64.0.0/24").value(), net::parse_cidr("fd64::/64").value()};
  return spec;
}

World::World(Options options)
    : options_(std::move(options)), directory_(make_directory()), lab_(options_.lab) {
  start_server();
  apply(
      {{{"apiVersion", "networking.k8s.io/v1"},
        {"kind", "ServiceCIDR"},
        {"metadata", {{"name", "kubernetes"}}},
        {"spec", {{"cidrs", {"10.112.0.0/16", "fdc0::/112"}}}}},
       node_object()});
  if (options_.start_daemon) {
    start_daemon();
  }
}

World::~World() {
  daemon_.reset();
  server_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string World::program(const std::string& name) const {
  if (const char* daemon = std::getenv("SHUNT_DAEMON"); daemon != nullptr && name == "kube-shunt") {
    return std::filesystem::absolute(daemon);
  }
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

void World::wait_for(const std::function<bool()>& condition, const std::string& what) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("waited in vain for " + what + "\n" + daemon_log());
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
}

void World::start_server(bool with_emptied_watch_cache) {
  lab::ProcessSpec spec;
  spec.argv = {
      program("test-apiserver"),
      "--pki",
      directory_ + "/pki",
      "--listen",
      kServer,
      "--insecure-listen",
      kAdmin,
      "--rbac",
      "kube-proxy",
      "--bookmark-interval",
      "20",
      "--state",
      directory_ + "/state"};
  if (with_emptied_watch_cache) {
    spec.argv.emplace_back("--watch-cache-empty-after-restart");
  }
  spec.argv.insert(spec.argv.end(), options_.server_flags.begin(), options_.server_flags.end());
  spec.log_file = directory_ + "/server.log";
  server_.emplace(lab_.node(), spec);
  wait_for(
      [&] {
        return lab::plain_http(
                   lab_.node(), *net::parse_socket_address(kAdmin), "GET", "/_test/stats")
                   .status == 200;
      },
      "the API server");
}

void World::kill_server() {
  server_->kill();
  server_.reset();
}

void World::start_daemon() {
  lab::ProcessSpec spec;
  spec.argv = options_.daemon_prefix;
  for (const std::string& argument :
       {options_.daemon_program.empty() ? program("kube-shunt")
                                        : directory_ + "/" + options_.daemon_program,
        std::string("--kubeconfig"),
        directory_ + "/" + options_.kubeconfig,
        std::string("--hostname-override=edge-a"),
        std::string("--proxy-mode=nftables"),
        std::string("--conntrack-max-per-core=0"),  // a namespace may not set the machine's limit
        "--status-socket=" + directory_ + "/status"}) {
    spec.argv.push_back(argument);
  }
  if (!options_.config_file.empty()) {
    spec.argv.push_back("--config=" + directory_ + "/" + options_.config_file);
  }
  spec.argv.insert(spec.argv.end(), options_.daemon_flags.begin(), options_.daemon_flags.end());
  spec.log_file = directory_ + "/daemon.log";
  daemon_.emplace(lab_.node(), spec);
}

void World::kill_daemon() {
  daemon_->kill();
  daemon_.reset();
}

int World::stop_daemon() {
  const int status = daemon_->terminate();
  daemon_.reset();
  return status;
}

std::string World::admin(
    const std::string& method, const std::string& path, const std::string& body) const {
  lab::HttpAnswer answer =
      lab::plain_http(lab_.node(), *net::parse_socket_address(kAdmin), method, path, body);
  if (answer.status < 200 || answer.status > 299) {
    throw std::runtime_error(
        method + " " + path + ": " + std::to_string(answer.status) + " " + answer.body);
  }
  return std::move(answer.body);
}

void World::apply(const std::vector<json>& objects, bool raw) const {
  admin(
      "POST",
      raw ? "/_test/apply?raw=true" : "/_test/apply",
      json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}.dump());
}

void World::remove(const std::string& kind, const std::string& name) const {
  admin(
      "POST",
      "/_test/delete",
      json::array({{{"kind", kind}, {"namespace", "ns"}, {"name", name}}}).dump());
}

std::optional<json> World::status() const { return lab::agent_status(directory_ + "/status"); }

json World::settle(milliseconds patience) const {
  const json stats = json::parse(admin("GET", "/_test/stats"));
  const std::uint64_t version = std::stoull(stats.at("resourceVersion").get<std::string>());
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const std::optional<json> now = status();
    if (now && lab::has_applied(*now, version)) {
      return *now;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error(
          "the daemon has not caught up with version " + std::to_string(version) + "\n" +
          (now ? now->dump() : "no status") + "\n" + daemon_log());
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

std::string World::daemon_log() const {
  std::stringstream out;
  out << std::ifstream(directory_ + "/daemon.log").rdbuf();
  return out.str();
}

void World::await_log(const std::string& text, std::size_t times) const {
  wait_for(
      [&] {
        const std::string log = daemon_log();
        std::size_t seen = 0;
        for (std::size_t at = log.find(text); at != std::string::npos;
             at = log.find(text, at + 1)) {
          ++seen;
        }
        return seen >= times;
      },
      "\"" + text + "\" in the daemon's log");
}

lab::HttpAnswer World::get(int port, const std::string& path) const {
  return lab::plain_http(
      lab_.node(),
      net::parse_socket_address("127.0.0.1:" + std::to_string(port)).value(),
      "GET",
      path);
}

std::string World::on_node(const std::string& command) const {
  return lab_.node().run([&] {
    std::string out;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) {
      throw std::runtime_error("popen");
    }
    std::array<char, 65536> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      out.append(buffer.data(), got);
    }
    if (::pclose(pipe) != 0) {
      throw std::runtime_error(command + ": " + out);
    }
    return out;
  });
}

json service(const std::string& name, const std::vector<std::string>& cluster_ips, int port) {
  json families = json::array();
  for (const std::string& ip : cluster_ips) {
    families.push_back(ip.find(':') == std::string::npos ? "IPv4" : "IPv6");
  }
  return {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", {{"namespace", "ns"}, {"name", name}}},
      {"spec",
       {{"clusterIP", cluster_ips.front()},
        {"clusterIPs", cluster_ips},
        {"ipFamilies", families},
        {"ports", {{{"name", "p"}, {"port", port}, {"protocol", "TCP"}}}}}}};
}

json slice(
    const std::string& service_name,
    const std::string& family,
    const std::vector<std::string>& addresses,
    int port) {
  json endpoints = json::array();
  for (const std::string& address : addresses) {
    endpoints.push_back(
        {{"addresses", {address}}, {"conditions", {{"ready", true}}}, {"nodeName", "edge-a"}});
  }
  return {
      {"apiVersion", "discovery.k8s.io/v1"},
      {"kind", "EndpointSlice"},
      {"metadata",
       {{"namespace", "ns"},
        {"name", service_name + (family == "IPv4" ? "-4" : "-6")},
        {"labels", {{"kubernetes.io/service-name", service_name}}}}},
      {"addressType", family},
      {"endpoints", endpoints},
      {"ports", {{{"name", "p"}, {"port", port}, {"protocol", "TCP"}}}}};
}

void set_ready(json& slice, std::size_t index, bool ready) {
  slice["endpoints"][index]["conditions"]["ready"] = ready;
}

}  // namespace shunt::test
