// A thousand good Services, which somebody absurd walks among.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/load.h"
#include "daemon/table_listing.h"
#include "daemon/world.h"

namespace shunt::test {

inline constexpr int kCrowd = 1000;
inline constexpr int kCrowdPods = 3;

inline std::string crowd_ip(int i) {
  return "10.112." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250);
}
inline std::string crowd_pod(int i) { return "10.64.0." + std::to_string(1 + i % kCrowdPods); }

// Services good-0 to good-999 with one endpoint each, and their slices.
inline std::vector<nlohmann::json> crowd() {
  std::vector<nlohmann::json> out;
  out.reserve(std::size_t{2} * kCrowd);
  for (int i = 0; i < kCrowd; ++i) {
    const std::string name = "good-" + std::to_string(i);
    out.push_back(service(name, {crowd_ip(i)}));
    out.push_back(slice(name, "IPv4", {crowd_pod(i)}));
  }
  return out;
}

// The pods of the crowd, and one at 10.64.0.4 for those who do not belong to it.
class Pods {
 public:
  explicit Pods(const World& world) : world_(&world) {}

  // A new connection from outside; the server's name, or why there was none.
  std::string ask(const std::string& frontend) const {
    lab::Question question;
    question.from = address("198.51.100.7:0");
    question.to = net::parse_socket_address(frontend).value();
    question.timeout = std::chrono::seconds(5);  // the machine may be busy
    const lab::Answer answer = lab::ask(world_->lab().outside(), question);
    switch (answer.kind) {
      case lab::Answer::Kind::Answered:
        return answer.by;
      case lab::Answer::Kind::Refused:
        return "refused";
      case lab::Answer::Kind::TimedOut:
        return "timed out";
      case lab::Answer::Kind::Failed:
        break;
    }
    return "failed";
  }

  // All of the crowd is in the kernel, and every fiftieth is asked.
  void check_crowd(const TableListing& table) const {
    std::string missing;
    for (int i = 0; i < kCrowd; ++i) {
      if (!table.has("service-ips", crowd_ip(i) + " . tcp . 80")) {
        missing += crowd_ip(i) + " ";
      }
    }
    CHECK(missing.empty());
    for (int i = 0; i < kCrowd; i += 50) {
      INFO(crowd_ip(i));
      CHECK(ask(crowd_ip(i) + ":80") == crowd_pod(i));
    }
  }

 private:
  lab::EchoServer server(const char* ip) const {
    return {
        world_->lab().place("pods"),
        net::Protocol::Tcp,
        net::parse_socket_address(std::string(ip) + ":8080").value(),
        ip};
  }

  const World* world_;
  lab::EchoServer one_{server("10.64.0.1")};
  lab::EchoServer two_{server("10.64.0.2")};
  lab::EchoServer three_{server("10.64.0.3")};
  lab::EchoServer four_{server("10.64.0.4")};
};

// Whether a line of the log, a warning at least, has this name as a whole word, and `what`.
inline bool complains(
    const std::string& log, const std::string& name, const std::string& what = {}) {
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/';
  };
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if ((line.find(" level=warning ") == std::string::npos &&
         line.find(" level=error ") == std::string::npos) ||
        line.find(what) == std::string::npos) {
      continue;
    }
    for (auto at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
      const auto end = at + name.size();
      if ((at == 0 || !is_of_name(line[at - 1])) &&
          (end == line.size() || !is_of_name(line[end]))) {
        return true;
      }
    }
  }
  return false;
}

// Nothing that the cluster says makes a line of its own, or one that fills a disk.
inline void check_lines(const std::string& log) {
  std::string odd;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("ts=2") || line.size() > 10'000) {
      odd += line.substr(0, 200) + "\n";
    }
  }
  INFO(odd);
  CHECK(odd.empty());
}

inline void check_same(const TableListing& before, const TableListing& after) {
  const std::string changes = difference(before, after);
  INFO(changes);
  CHECK(changes.empty());
}

inline std::size_t starts(const std::string& log) {
  std::size_t count = 0;
  const std::string text = "msg=\"kube-shunt starts\"";
  for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace shunt::test
