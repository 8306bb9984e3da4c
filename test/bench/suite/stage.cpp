#include "bench/suite/stage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench/suite/objects.h"
#include "bench/suite/samples.h"
#include "netns/agent_status.h"

namespace shunt::bench {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr char kAdmin[] = "127.0.0.1:8080";

std::string make_directory() {
  char name[] = "/tmp/kube-shunt-bench-XXXXXX";
  if (::mkdtemp(name) == nullptr) {
    throw std::runtime_error("no temporary directory");
  }
  return name;
}

// Every pod of the load is there, behind one link.
lab::LabSpec lab_spec() {
  lab::LabSpec spec = lab::default_lab_spec();
  for (const char* range : {"10.64.0.0/24", "10.128.0.0/9", "fd64::/64"}) {
    spec.shared_pods.push_back(net::parse_cidr(range).value());
  }
  return spec;
}

}  // namespace

std::string LoadSize::text() const {
  return short_count(services) + " x " + short_count(endpoints);
}

std::string program_beside_us(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

Stage::Stage(const LoadSize& load)
    : load_(load),
      directory_(make_directory()),
      lab_(lab_spec()),
      http_(lab_.node(), net::parse_socket_address(kAdmin).value()) {
  start_server();
  apply({service_cidr_object("10.96.0.0/12"), node_object(kNode, "10.80.0.10")});
  put_load();
}

Stage::~Stage() {
  daemon_.reset();
  server_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void Stage::start_server() {
  lab::ProcessSpec spec;
  spec.argv = {
      program_beside_us("test-apiserver"),
      "--pki",
      pki(),
      "--listen",
      kServer,
      "--insecure-listen",
      kAdmin};
  spec.log_file = directory_ + "/server.log";
  server_.emplace(lab_.node(), spec);
  for (int tries = 0;; ++tries) {
    try {
      (void)http_.request("GET", "/_test/stats");
      return;
    } catch (const std::exception&) {
      if (tries == 3000) {
        throw std::runtime_error("the API server does not start\n" + log_tail("server.log"));
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
}

void Stage::put_load() {
  if (load_.services == 0) {
    return;
  }
  const json wish{{"services", load_.services}, {"endpoints", load_.endpoints}, {"prefix", "load"}};
  const HttpReply reply = http_.ask("POST", "/_test/generate", wish.dump());
  has_generator_ = reply.status >= 200 && reply.status < 300;
  if (has_generator_) {
    wait_for_generator();
    return;
  }
  constexpr std::size_t kAtOnce = 500;
  std::vector<json> objects;
  for (std::size_t s = 0; s < load_.services; ++s) {
    objects.push_back(load_service(s));
    objects.push_back(load_slice(s, load_.endpoints));
    if (objects.size() >= kAtOnce || s + 1 == load_.services) {
      apply(std::exchange(objects, {}));
    }
  }
}

void Stage::wait_for_generator() {
  while (json::parse(http_.request("GET", "/_test/generate").body).value("running", false)) {
    std::this_thread::sleep_for(milliseconds(50));
  }
}

void Stage::apply(const std::vector<json>& objects) {
  (void)http_.request(
      "POST",
      "/_test/apply?raw=true",
      json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}.dump());
}

void Stage::remove(const std::string& path) { (void)http_.ask("DELETE", path); }

Nanoseconds Stage::start_daemon() {
  lab::ProcessSpec spec;
  spec.argv = {
      program_beside_us("kube-shunt"),
      "--kubeconfig",
      pki() + "/kubeconfig",
      "--hostname-override",
      kNode,
      "--conntrack-max-per-core=0",  // a network namespace may not set the machine's limit
      "--status-socket",
      directory_ + "/status"};
  spec.log_file = directory_ + "/daemon.log";
  const Nanoseconds begin = now_ns();
  daemon_.emplace(lab_.node(), spec);
  return begin;
}

void Stage::stop_daemon() {
  if (daemon_) {
    (void)daemon_->terminate(std::chrono::seconds(30));
    daemon_.reset();
  }
}

void Stage::ensure_daemon() {
  if (!daemon_ || !daemon_->running()) {
    (void)start_daemon();
  }
  (void)wait_in_sync();
}

void Stage::freeze_daemon() const { daemon_->signal(SIGSTOP); }
void Stage::thaw_daemon() const { daemon_->signal(SIGCONT); }

void Stage::kill_daemon() {
  daemon_->kill();
  daemon_.reset();
}

json Stage::wait_in_sync(std::chrono::seconds patience) {
  const json stats = json::parse(http_.request("GET", "/_test/stats").body);
  const std::uint64_t version = std::stoull(stats.at("resourceVersion").get<std::string>());
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const std::optional<json> now = lab::agent_status(directory_ + "/status");
    if (now && lab::has_applied(*now, version)) {
      return *now;
    }
    if (std::chrono::steady_clock::now() > deadline || !daemon_->running()) {
      throw std::runtime_error(fmt::format(
          "the daemon is not in sync with version {}: {}\n{}",
          version,
          now ? now->dump() : "no status",
          log_tail("daemon.log")));
    }
    std::this_thread::sleep_for(milliseconds(3));
  }
}

void Stage::wait_applied() {
  const auto all_sent = [&] {
    const json watches = json::parse(http_.request("GET", "/_test/watches").body).at("watches");
    return std::all_of(watches.begin(), watches.end(), [](const json& watch) {
      return watch.value("upToDate", false);
    });
  };
  for (int tries = 0; tries < 1000; ++tries) {
    if (all_sent()) {
      std::this_thread::sleep_for(milliseconds(50));  // from its socket into its hands
      const std::optional<json> now = lab::agent_status(directory_ + "/status");
      if (now && now->value("idle", false)) {
        return;
      }
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  throw std::runtime_error("the daemon does not come to rest\n" + log_tail("daemon.log"));
}

void Stage::remove_rules() const {
  (void)lab::run_program({"ip", "netns", "exec", node().name(), "nft", "flush", "ruleset"});
  // It frees elements in the background, a million in about a second.
  std::this_thread::sleep_for(milliseconds(100 + load_.services * load_.endpoints / 500));
}

std::string Stage::log_tail(const std::string& name) const {
  std::stringstream out;
  out << std::ifstream(directory_ + "/" + name).rdbuf();
  const std::string text = out.str();
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 4000));
}

}  // namespace shunt::bench
