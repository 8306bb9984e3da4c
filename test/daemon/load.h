// New connections to a Service from outside, at a steady rate, while a test does something to the
// daemon.
#pragma once

#include <chrono>
#include <future>
#include <string>

#include "daemon/world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {

// A question that got no answer within three seconds has failed: TCP tried again meanwhile.
class Load {
 public:
  Load(const World& world, std::chrono::milliseconds time) {
    lab::LoadSpec spec;
    spec.question.from = address("198.51.100.7:0");
    spec.question.to = address("10.112.0.10:80");
    spec.question.timeout = std::chrono::milliseconds(3000);
    spec.per_second = 200;
    spec.parallel = 1000;
    spec.time = time;
    report_ = std::async(
        std::launch::async, [&world, spec] { return run_load(world.lab().outside(), spec); });
  }
  lab::LoadReport report() { return report_.get(); }

 private:
  std::future<lab::LoadReport> report_;
};

// A Service at 10.112.0.10:80 with three endpoints that answer.
struct Shop {
  explicit Shop(World::Options options = {}) : world(std::move(options)) {
    world.apply(
        {service("web", {"10.112.0.10"}),
         slice("web", "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3"})});
    if (world.has_daemon()) {
      world.settle();
    }
  }
  World world;
  lab::EchoServer one{server("10.64.0.1:8080", "one")};
  lab::EchoServer two{server("10.64.0.2:8080", "two")};
  lab::EchoServer three{server("10.64.0.3:8080", "three")};

 private:
  lab::EchoServer server(const char* at, const char* name) const {
    return {world.lab().place("pods"), net::Protocol::Tcp, address(at), name};
  }
};

}  // namespace shunt::test
