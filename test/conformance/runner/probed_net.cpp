#include "runner/probed_net.h"

#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "base/subprocess.h"
#include "http/testing/client.h"

namespace shunt::conformance {
namespace {

// "0100007F:7678" of /proc/net/tcp: words of 32 bits as this machine stores them.
std::string socket_of(const std::string& text, net::Family family) {
  const std::size_t colon = text.find(':');
  net::SocketAddress out{{family, {}}, {}};
  for (std::size_t word = 0; word * 8 < colon; ++word) {
    const auto value =
        static_cast<std::uint32_t>(std::stoul(text.substr(word * 8, 8), nullptr, 16));
    std::memcpy(out.ip.bytes.data() + word * 4, &value, 4);
  }
  out.port = net::Port{static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1), nullptr, 16))};
  return net::to_string(out);
}

class OwnNet : public ProbedNet {
 public:
  OwnNet() : server_(*http::Server::start("health-ports")) {}

  std::unique_ptr<health::Listeners> listeners() override { return health::listeners_of(*server_); }

  // As the kernel says it.
  std::vector<std::string> listening() override {
    constexpr const char* kListening = "0A";
    std::vector<std::string> out;
    for (const auto& [file, family] :
         {std::pair("tcp", net::Family::IPv4), std::pair("tcp6", net::Family::IPv6)}) {
      std::ifstream table(std::string("/proc/thread-self/net/") + file);
      std::string line;
      std::getline(table, line);  // the names of the columns
      while (std::getline(table, line)) {
        std::istringstream columns(line);
        std::string number;
        std::string local;
        std::string remote;
        std::string state;
        columns >> number >> local >> remote >> state;
        if (state == kListening) {
          out.push_back(socket_of(local, family));
        }
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::optional<http::Response> get(const net::SocketAddress& at) override {
    const auto reply = http::testing::get(at, "/whatever");
    if (!reply) {
      return std::nullopt;
    }
    http::Response out{reply->status, reply->header("Content-Type"), reply->body};
    std::istringstream lines(reply->head);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) {
        out.headers.emplace_back(
            line.substr(0, colon), line.substr(colon + 2, line.size() - colon - 3));
      }
    }
    return out;
  }

 private:
  std::unique_ptr<http::Server> server_;
};

struct Written {
  std::map<std::uint64_t, std::pair<net::SocketAddress, http::Service>> open;
  std::uint64_t last_id = 0;
};

class WrittenListeners : public health::Listeners {
 public:
  explicit WrittenListeners(std::shared_ptr<Written> written) : written_(std::move(written)) {}
  Result<std::uint64_t> listen(const http::ListenAddress& address, http::Service service) override {
    for (const auto& [id, open] : written_->open) {
      if (open.first == address.address) {
        return fail(Errc::Exists, "listen tcp " + to_string(address) + ": in use");
      }
    }
    written_->open.emplace(++written_->last_id, std::pair(address.address, std::move(service)));
    return written_->last_id;
  }
  void close(std::uint64_t id) override { written_->open.erase(id); }

 private:
  std::shared_ptr<Written> written_;
};

class WrittenNet : public ProbedNet {
 public:
  explicit WrittenNet(std::vector<net::IpAddress> addresses) : addresses_(std::move(addresses)) {}

  std::unique_ptr<health::Listeners> listeners() override {
    return std::make_unique<WrittenListeners>(written_);
  }

  std::vector<std::string> listening() override {
    std::vector<std::string> out;
    for (const auto& [id, open] : written_->open) {
      out.push_back(net::to_string(open.first));
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::optional<http::Response> get(const net::SocketAddress& at) override {
    const bool is_here =
        net::is_loopback(at.ip) || std::ranges::find(addresses_, at.ip) != addresses_.end();
    const net::IpAddress any{at.ip.family, {}};
    for (const auto& [id, open] : written_->open) {
      if (is_here && open.first.port == at.port &&
          (open.first.ip == at.ip || open.first.ip == any)) {
        http::Response out = open.second.handler({"GET", "/whatever", "", {}, ""});
        out.headers.emplace_back("Content-Type", out.content_type);
        return out;
      }
    }
    return std::nullopt;
  }

 private:
  std::shared_ptr<Written> written_ = std::make_shared<Written>();
  std::vector<net::IpAddress> addresses_;
};

bool ip(std::vector<std::string> arguments) {
  Command command;
  command.argv = {"ip"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  const auto output = run(command);
  return output && output->exit_code == 0;
}

}  // namespace

std::unique_ptr<ProbedNet> own_net(const std::vector<net::IpAddress>& addresses) {
  if (::unshare(CLONE_NEWNET) != 0 || !ip({"link", "set", "lo", "up"})) {
    return nullptr;
  }
  for (const net::IpAddress& address : addresses) {
    if (!net::is_loopback(address) &&
        !ip({"address", "add", net::to_string(address), "dev", "lo"})) {
      return nullptr;
    }
  }
  return std::make_unique<OwnNet>();
}

std::unique_ptr<ProbedNet> written_net(std::vector<net::IpAddress> addresses) {
  return std::make_unique<WrittenNet>(std::move(addresses));
}

}  // namespace shunt::conformance
