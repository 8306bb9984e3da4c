#include "virtual_servers/connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "base/unique_fd.h"
#include "netns/process.h"

namespace shunt::conformance::virtual_servers {
namespace {

constexpr std::uint8_t kSyncId = 7;
constexpr const char* kLink = "teller0";
constexpr const char* kGroup = "224.0.0.81";  // fixed in the kernel
constexpr std::uint16_t kPort = 8848;
constexpr std::chrono::seconds kForEver{100'000};
constexpr std::chrono::seconds kAtOnce{1};
constexpr std::chrono::seconds kPatience{5};

net::IpAddress client_of(net::Family family) {
  return net::parse_ip(family == net::Family::IPv4 ? "198.51.100.50" : "2001:db8:e::50").value();
}

void send_message(const std::string& message) {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ip_mreqn out{};
  out.imr_ifindex = static_cast<int>(::if_nametoindex(kLink));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kPort);
  ::inet_pton(AF_INET, kGroup, &to.sin_addr);
  if (!fd || ::setsockopt(fd.get(), IPPROTO_IP, IP_MULTICAST_IF, &out, sizeof out) != 0 ||
      ::sendto(
          fd.get(),
          message.data(),
          message.size(),
          0,
          reinterpret_cast<const sockaddr*>(&to),
          sizeof to) != static_cast<ssize_t>(message.size())) {
    lab::raise_errno("cannot tell IPVS of connections");
  }
}

std::string to_text(const CountsByReal& counts) {
  std::string out;
  for (const auto& [key, of_real] : counts) {
    out += fmt::format(
        "{}{} {}: {} active, {} inactive",
        out.empty() ? "" : "; ",
        to_string(key.first),
        net::to_string(key.second),
        of_real.active,
        of_real.inactive);
  }
  return out.empty() ? "none" : out;
}

}  // namespace

Connections::Connections(const lab::Netns& node, const lab::Netns& teller, int patience)
    : node_(&node), teller_(&teller), patience_(patience) {}

void Connections::listen() {
  lab::run_program(
      {"ip", "-batch", "-"},
      fmt::format(
          "link add name {0} netns {1} type veth peer name {0} netns {2}\n",
          kLink,
          node_->name(),
          teller_->name()));
  lab::run_program({"ip", "-n", node_->name(), "link", "set", kLink, "up"});
  lab::run_program(
      {"ip", "-n", teller_->name(), "-batch", "-"},
      fmt::format("link set {0} up\naddr add 169.254.81.2/24 dev {0}\n", kLink));
  lab::run_program(
      {"ip",
       "netns",
       "exec",
       node_->name(),
       "ipvsadm",
       "--start-daemon",
       "backup",
       "--mcast-interface",
       kLink,
       "--syncid",
       std::to_string(kSyncId)});
  listens_ = true;
}

void Connections::tell(const std::vector<Connection>& connections) const {
  for (std::size_t at = 0; at < connections.size(); at += kConnectionsPerMessage) {
    const std::size_t end = std::min(connections.size(), at + kConnectionsPerMessage);
    const std::vector<Connection> part(
        connections.begin() + static_cast<std::ptrdiff_t>(at),
        connections.begin() + static_cast<std::ptrdiff_t>(end));
    teller_->run([&] { send_message(sync_message(kSyncId, part)); });
  }
}

std::vector<Connection> Connections::opened(const Key& key, const Counts& counts) {
  std::vector<Connection> out;
  for (std::uint32_t i = 0; i < counts.active + counts.inactive; ++i) {
    const net::SocketAddress client{
        client_of(key.first.address.ip.family), net::Port{++last_port_}};
    out.push_back(
        {key.first.protocol, client, key.first.address, key.second, i < counts.active, kForEver});
  }
  return out;
}

CountsByReal Connections::counted() const {
  return parse_counts(lab::run_program({"ip", "netns", "exec", node_->name(), "ipvsadm", "-Ln"}));
}

std::vector<Connection> Connections::end_all_but(const CountsByReal& wanted) {
  std::vector<Connection> ended;
  for (auto entry = open_.begin(); entry != open_.end();) {
    const auto found = wanted.find(entry->first);
    if (found != wanted.end() && found->second == entry->second.first) {
      ++entry;
      continue;
    }
    for (Connection& connection : entry->second.second) {
      connection.timeout = kAtOnce;
      ended.push_back(connection);
    }
    entry = open_.erase(entry);
  }
  return ended;
}

std::vector<Connection> Connections::begin(const CountsByReal& wanted) {
  const CountsByReal seen = counted();
  std::vector<Connection> begun;
  for (const auto& [key, counts] : wanted) {
    if (!open_.contains(key) && seen.contains(key)) {
      std::vector<Connection> connections = opened(key, counts);
      begun.insert(begun.end(), connections.begin(), connections.end());
      open_[key] = {counts, std::move(connections)};
    }
  }
  return begun;
}

bool Connections::are_counted(const CountsByReal& seen) const {
  return std::ranges::all_of(seen, [&](const auto& entry) {
    const auto found = open_.find(entry.first);
    return entry.second == (found == open_.end() ? Counts{} : found->second.first);
  });
}

void Connections::set(const CountsByReal& wanted) {
  if (!listens_) {
    listen();
  }
  tell(end_all_but(wanted));
  const std::vector<Connection> begun = begin(wanted);
  // Messages are datagrams, and the kernel's listener may have begun a moment ago: said again until
  // it counts so. What it knows already it only renews.
  const auto deadline = std::chrono::steady_clock::now() + patience_ * kPatience;
  while (true) {
    tell(begun);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const CountsByReal seen = counted();
    if (are_counted(seen)) {
      return;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("the kernel does not count the connections: " + to_text(seen));
    }
  }
}

}  // namespace shunt::conformance::virtual_servers
