// The whole of it: the recorder's thread, TLS, the test API server with kube-proxy's rights.
#include "events/recorder.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <thread>

#include "test/apiserver/server.h"

namespace shunt::events {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test_api::Json;

class World {
 public:
  explicit World(bool rbac = true) {
    std::string name = (std::filesystem::temp_directory_path() / "shunt-events-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    dir_ = name;
    options_.listen = {*net::parse_socket_address("127.0.0.1:0")};
    options_.pki = dir_;
    options_.auth.rbac = rbac;
    start_server();
    options_.listen = server_->addresses();
    auto opened = apiserver::Connector::open({.kubeconfig = dir_ + "/kubeconfig", .master = ""});
    REQUIRE(opened);
    connector_ = std::move(*opened);
    recorder = std::make_unique<Recorder>(
        *connector_,
        SenderOptions{
            .reporter = reporter_on("host"), .tries = 100, .retry_delay = Millis(20), .rate = {}});
  }
  ~World() {
    recorder.reset();
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void start_server() {
    auto started = test_api::Server::start(options_);
    REQUIRE(started);
    server_ = std::move(*started);
  }
  void stop_server() { server_.reset(); }
  test_api::Server& server() { return *server_; }

  // Every Event the server holds, by name, once `enough` says so or five seconds have passed.
  template <typename Enough>
  std::vector<Json> events_when(const Enough& enough) {
    std::vector<Json> held;
    for (int i = 0; i < 500; ++i) {
      held.clear();
      for (const auto& object : *server_->store().list(kEvents).objects) {
        held.push_back(Json::parse(object->body));
      }
      if (enough(held)) {
        break;
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    return held;
  }

  static constexpr std::size_t kEvents = 4;  // the table of test_api::all_resources()
  std::unique_ptr<Recorder> recorder;

 private:
  std::string dir_;
  test_api::ServerOptions options_;
  std::unique_ptr<test_api::Server> server_;
  std::unique_ptr<apiserver::Connector> connector_;
};

kube::Notice notice(const std::string& name, const std::string& reason = "SetAside") {
  return {
      .kind = kube::Notice::Kind::Service,
      .object = {"shop", name},
      .uid = "u",
      .reason = reason,
      .action = "Plan",
      .note = "said of " + name};
}

auto at_least(std::size_t n) {
  return [n](const std::vector<Json>& events) { return events.size() >= n; };
}

TEST_CASE("what is recorded becomes an Event, and a series when it is repeated") {
  World world;
  world.recorder->start();
  const kube::NoticeSink sink = world.recorder->sink();
  sink(notice("web"));
  auto events = world.events_when(at_least(1));
  REQUIRE(events.size() == 1);
  CHECK(events[0]["reportingController"] == "kube-shunt");
  CHECK(events[0]["reportingInstance"] == "kube-shunt-host");
  CHECK(events[0]["regarding"]["name"] == "web");
  CHECK(events[0]["metadata"]["namespace"] == "shop");
  CHECK(events[0]["note"] == "said of web");
  CHECK_FALSE(events[0].contains("series"));

  for (int i = 0; i < 10; ++i) {
    sink(notice("web"));
  }
  kube::Notice node = notice("node-1", "Starting");
  node.kind = kube::Notice::Kind::Node;
  node.object.name_space = "";
  sink(node);
  events = world.events_when(at_least(2));
  REQUIRE(events.size() == 2);
  CHECK(events[0]["metadata"]["namespace"] == "default");
  CHECK(events[1]["series"]["count"] == 2);
  CHECK(world.recorder->status().recorded == 12);
  CHECK(world.recorder->status().refused == 0);
}

TEST_CASE("what is recorded while the server is away arrives when it is back") {
  World world;
  world.recorder->start();
  world.recorder->record(notice("before"));
  REQUIRE(world.events_when(at_least(1)).size() == 1);
  world.stop_server();
  world.recorder->record(notice("while"));
  std::this_thread::sleep_for(milliseconds(100));
  world.start_server();
  CHECK(world.events_when(at_least(1)).size() == 1);
  CHECK(world.recorder->status().given_up == 0);
}

TEST_CASE("who lacks the right to write Events goes on without") {
  World world;
  REQUIRE(world.server().faults().replace(
      Json::parse(R"([{"kind":"status","code":403,"match":{"resource":"events"}}])")));
  world.recorder->start();
  world.recorder->record(notice("a"));
  world.recorder->record(notice("b"));
  for (int i = 0; i < 500 && world.recorder->status().refused < 2; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  CHECK(world.recorder->status().refused == 2);
  CHECK(world.recorder->status().sent == 0);
}

TEST_CASE("nobody waits for a server that hangs: what is too much is dropped, and stop is quick") {
  World world;
  REQUIRE(world.server().faults().replace(
      Json::parse(R"([{"kind":"stall","beforeHeaders":true,"match":{"resource":"events"}}])")));
  world.recorder->start();
  const auto begun = Clock::now();
  for (std::size_t i = 0; i < Recorder::kMaxQueue + 100; ++i) {
    world.recorder->record(notice("web-" + std::to_string(i)));
  }
  const auto recorded = Clock::now();
  CHECK(recorded - begun < seconds(5));  // and not the minutes that they would take to send
  CHECK(world.recorder->status().dropped >= 90);
  world.recorder->stop();
  CHECK(Clock::now() - recorded < seconds(2));
  CHECK(world.recorder->status().given_up == 0);
}

}  // namespace
}  // namespace shunt::events
