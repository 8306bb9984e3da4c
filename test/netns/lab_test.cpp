#include "netns/lab.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "netns/client.h"
#include "netns/echo_server.h"
#include "netns/process.h"

using namespace shunt;       // NOLINT(google-build-using-namespace): a test file
using namespace shunt::lab;  // NOLINT(google-build-using-namespace): a test file

namespace {

net::SocketAddress address(const char* text) { return net::parse_socket_address(text).value(); }

LabSpec two_pods(LabSpec::Links links) {
  LabSpec spec = default_lab_spec();
  spec.links = links;
  spec.link_name = links == LabSpec::Links::Bridge ? "pods0" : "pod";
  spec.pods = {
      {"web-1", {net::parse_ip("10.64.0.1").value(), net::parse_ip("fd64::1").value()}},
      {"web-2", {net::parse_ip("10.64.0.2").value(), net::parse_ip("fd64::2").value()}}};
  return spec;
}

Answer ask_from(const Netns& where, const char* from, const char* to, net::Protocol protocol) {
  Question question;
  question.protocol = protocol;
  question.from = address(from);
  question.to = address(to);
  return ask(where, question);
}

}  // namespace

TEST_CASE("pods, node and outside reach each other with their own addresses") {
  for (const LabSpec::Links links : {LabSpec::Links::Veth, LabSpec::Links::Bridge}) {
    const Lab lab(two_pods(links));
    for (const net::Protocol protocol : {net::Protocol::Tcp, net::Protocol::Udp}) {
      CAPTURE(links, net::to_string(protocol));
      const EchoServer v4(lab.place("web-1"), protocol, address("10.64.0.1:80"), "web-1");
      const EchoServer v6(lab.place("web-1"), protocol, address("[fd64::1]:80"), "web-1");
      const EchoServer remote(lab.outside(), protocol, address("10.64.1.7:80"), "remote");
      const EchoServer node(lab.node(), protocol, address("10.80.0.10:80"), "node");

      const Answer from_pod = ask_from(lab.place("web-2"), "10.64.0.2:0", "10.64.0.1:80", protocol);
      CHECK(from_pod.by == "web-1");
      CHECK(from_pod.seen_as.starts_with("10.64.0.2:"));
      CHECK(ask_from(lab.place("web-2"), "[fd64::2]:0", "[fd64::1]:80", protocol).by == "web-1");
      CHECK(ask_from(lab.place("web-2"), "10.64.0.2:0", "10.64.1.7:80", protocol).by == "remote");
      CHECK(ask_from(lab.node(), "10.80.0.10:0", "10.64.0.1:80", protocol).by == "web-1");
      CHECK(ask_from(lab.node(), "10.80.0.10:0", "10.64.1.7:80", protocol).by == "remote");
      const Answer external = ask_from(lab.outside(), "198.51.100.7:0", "10.64.0.1:80", protocol);
      CHECK(external.by == "web-1");
      CHECK(external.seen_as.starts_with("198.51.100.7:"));
      CHECK(ask_from(lab.outside(), "[2001:db8:e::7]:0", "[fd64::1]:80", protocol).by == "web-1");
      CHECK(ask_from(lab.outside(), "10.64.1.9:0", "10.80.0.10:80", protocol).by == "node");
    }
  }
}

TEST_CASE("a closed port refuses at once, in both families and protocols") {
  const Lab lab(two_pods(LabSpec::Links::Veth));
  for (const net::Protocol protocol : {net::Protocol::Tcp, net::Protocol::Udp}) {
    CHECK(
        ask_from(lab.outside(), "198.51.100.7:0", "10.64.0.1:81", protocol).kind ==
        Answer::Kind::Refused);
    CHECK(
        ask_from(lab.place("web-2"), "[fd64::2]:0", "[fd64::1]:81", protocol).kind ==
        Answer::Kind::Refused);
  }
}

TEST_CASE("a place that shares many pods serves each of its addresses") {
  LabSpec spec = default_lab_spec();
  spec.shared_pods = {
      net::parse_cidr("10.64.0.0/24").value(), net::parse_cidr("fd64::/64").value()};
  const Lab lab(spec);
  const EchoServer v4(lab.place("pods"), net::Protocol::Tcp, address("10.64.0.77:80"), "many");
  const EchoServer v6(lab.place("pods"), net::Protocol::Tcp, address("[fd64::77]:80"), "many");
  CHECK(ask_from(lab.node(), "10.80.0.10:0", "10.64.0.77:80", net::Protocol::Tcp).by == "many");
  CHECK(ask_from(lab.node(), "[fd80::10]:0", "[fd64::77]:80", net::Protocol::Tcp).by == "many");
}

TEST_CASE("a load counts who answered and what failed") {
  const Lab lab(two_pods(LabSpec::Links::Veth));
  LoadSpec load;
  load.question.to = address("10.64.0.1:80");
  load.count = 50;
  {
    const EchoServer server(
        lab.place("web-1"), net::Protocol::Tcp, address("10.64.0.1:80"), "web-1");
    const LoadReport report = run_load(lab.place("web-2"), load);
    CHECK(report.answered.at("web-1") == 50);
    CHECK(report.unanswered() == 0);
  }
  CHECK(run_load(lab.place("web-2"), load).refused == 50);
}

TEST_CASE("processes run inside, and end with the lab") {
  const std::string log = std::filesystem::temp_directory_path() / "shunt-lab-test.log";
  std::filesystem::remove(log);
  const Lab lab(two_pods(LabSpec::Links::Veth));
  Process addresses(lab.place("web-1"), {{"ip", "-o", "addr", "show", "dev", "eth0"}, {}, log});
  CHECK(addresses.wait(std::chrono::seconds(5)) == 0);
  CHECK(run_program({"cat", log}).find("10.64.0.1/32") != std::string::npos);
  Process sleeper(lab.node(), {{"sleep", "60"}, {}, {}});
  CHECK(sleeper.running());
  CHECK(sleeper.terminate() == SIGTERM);
}

TEST_CASE("a dead process leaves no namespace behind") {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const Lab lab(default_lab_spec());
    ::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(namespaces_of(std::to_string(pid)).empty());

  const pid_t killed = ::fork();
  if (killed == 0) {
    const Lab lab(default_lab_spec());
    ::raise(SIGKILL);
  }
  ::waitpid(killed, &status, 0);
  CHECK_FALSE(namespaces_of(std::to_string(killed)).empty());
  reap_namespaces();
  CHECK(namespaces_of(std::to_string(killed)).empty());
}

TEST_CASE("a lab stands in well under a second") {
  const auto start = std::chrono::steady_clock::now();
  { const Lab lab(two_pods(LabSpec::Links::Veth)); }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
}
