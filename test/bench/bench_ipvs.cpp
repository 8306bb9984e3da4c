// bench_ipvs [SERVICES [ENDPOINTS [ADDRESSES]]]: what it costs to write virtual servers and their
// destinations, to read them back, and to hold addresses, against bare programs that do the same.
//
// SERVICES (2 000) of ENDPOINTS (10) each and ADDRESSES (10 000), in a network namespace of its
// own: the machine's IPVS is not touched. Medians of five rounds; the ways have their turns within
// a round. Needs root, and a kernel with IPVS:
//   scripts/vm.sh -- build/release/bin/bench_ipvs

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/ipvs/ipvs_backend.h"
#include "backend/nft/affinity_purger.h"
#include "backend/nft/nft_backend.h"
#include "backend/nft/wire.h"
#include "base/subprocess.h"
#include "bench/floor/ipvs_floor.h"
#include "netlink/ipvs.h"
#include "netlink/virtual_addresses.h"

namespace {

using namespace shunt;
using bench::IpvsFloor;
using bench::VirtualServer;
using netlink::VirtualAddresses;

constexpr int kRounds = 5;
constexpr std::uint32_t kMark = 0x8000;

template <typename T>
T need(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().what);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

net::IpAddress numbered(const char* first, std::size_t n) {
  net::IpAddress out = net::parse_ip(first).value();
  for (std::size_t at = out.size(); n > 0; n /= 256) {
    --at;
    out.bytes[at] = static_cast<std::uint8_t>(out.bytes[at] + n % 256);
  }
  return out;
}

std::vector<VirtualServer> cluster(std::size_t services, std::size_t endpoints) {
  std::vector<VirtualServer> out;
  for (std::size_t n = 0; n < services; ++n) {
    VirtualServer& one = out.emplace_back();
    one.address = {numbered("10.96.0.0", n), net::Port{80}};
    for (std::size_t m = 0; m < endpoints; ++m) {
      one.destinations.push_back({numbered("10.32.0.0", n * endpoints + m), net::Port{8080}});
    }
  }
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One way to do what others do as well.
struct Way {
  std::string name;
  std::function<void()> work;
  std::function<void()> prepare = {};
  std::vector<double> seconds = {};
};

void measure(const std::string& what, std::vector<Way> ways) {
  for (int round = -1; round < kRounds; ++round) {  // the first is for modules and caches
    for (Way& way : ways) {
      if (way.prepare) {
        way.prepare();
      }
      const auto began = std::chrono::steady_clock::now();
      way.work();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      if (round >= 0) {
        way.seconds.push_back(took.count());
      }
    }
  }
  const double floor = median(ways.front().seconds);
  fmt::print("{}\n", what);
  for (const Way& way : ways) {
    const double took = median(way.seconds);
    fmt::print(
        "  {:42} {:9.2f} ms  {:5.2f}x  (best {:.2f} ms)\n",
        way.name,
        took * 1e3,
        took / floor,
        *std::min_element(way.seconds.begin(), way.seconds.end()) * 1e3);
  }
}

netlink::ipvs::ServerKey key(const VirtualServer& server) {
  return {server.address, net::Protocol::Tcp};
}

void write_ours(netlink::ipvs::Socket& socket, const std::vector<VirtualServer>& servers) {
  netlink::ipvs::Commands commands;
  for (const VirtualServer& server : servers) {
    commands.add({key(server), "rr"});
    for (const net::SocketAddress& destination : server.destinations) {
      commands.add(key(server), netlink::ipvs::Destination{destination});
    }
  }
  std::vector<netlink::ipvs::Refused> refused;
  need(socket.send(commands, refused));
  if (!refused.empty()) {
    throw std::runtime_error(refused.front().error.what);
  }
}

std::size_t read_ours(netlink::ipvs::Socket& socket) {
  const auto servers = need(socket.servers(net::Family::IPv4));
  std::size_t out = servers.size();
  for (const netlink::ipvs::Server& server : servers) {
    out += need(socket.destinations(server.key)).size();
  }
  return out;
}

void expect(std::size_t got, std::size_t wanted) {
  if (got != wanted) {
    throw std::runtime_error(fmt::format("read {} of {}", got, wanted));
  }
}

void ip_batch(net::Family family, const std::string& lines) {
  const auto ran = need(run(
      {.argv = {"ip", family == net::Family::IPv4 ? "-4" : "-6", "-batch", "-"},
       .input = lines,
       .timeout = std::chrono::minutes(5)}));
  if (ran.exit_code != 0) {
    throw std::runtime_error("ip -batch: " + ran.diagnostics.substr(0, 200));
  }
}

void enter_namespace() {
  if (::unshare(CLONE_NEWNET) != 0) {
    throw std::runtime_error("no network namespace");
  }
  ip_batch(net::Family::IPv4, "link set lo up\n");
}

// Both ways to an IPVS without any virtual server. One that was emptied is something else: for two
// minutes the kernel keeps every destination that was removed, and looks through all of them when
// one is added.
struct FreshIpvs {
  FreshIpvs() {
    enter_namespace();  // with lo up: without any local address, IPVS takes none for a destination
    ours = need(netlink::ipvs::Socket::open());
    floor = std::make_unique<IpvsFloor>();
  }
  std::unique_ptr<netlink::ipvs::Socket> ours;
  std::unique_ptr<IpvsFloor> floor;
};

desired::DesiredState plans_for(const std::vector<VirtualServer>& servers) {
  desired::DesiredState out;
  out.node_port_cidrs.emplace();
  std::vector<desired::FrontendKey> touched;
  std::vector<desired::Conflict> conflicts;
  for (const VirtualServer& server : servers) {
    auto plan = std::make_shared<desired::FrontendPlan>();
    plan->service = "ns/" + net::to_string(server.address.ip) + ":http";
    plan->fate = desired::Fate::Balance;
    auto endpoints = server.destinations;
    std::sort(endpoints.begin(), endpoints.end());
    plan->endpoints = std::make_shared<const desired::EndpointList>(std::move(endpoints));
    out.set_service(
        {"ns", net::to_string(server.address.ip)},
        {},
        {{{server.address.ip, net::Protocol::Tcp, server.address.port}, plan}},
        touched,
        conflicts);
  }
  return out;
}

// In the namespace of the moment.
std::unique_ptr<backend::Backend> whole_back_end() {
  using backend::nft::KernelTransport;
  return std::make_unique<backend::ipvs::IpvsBackend>(
      backend::ipvs::Settings{},
      need(backend::ipvs::open_kernel(net::Family::IPv4, kMark)),
      [](backend::nft::NftBackend::Share share) {
        backend::nft::ProgramSettings settings;
        settings.local_mark = kMark;
        return std::make_unique<backend::nft::NftBackend>(
            net::Family::IPv4,
            settings,
            need(KernelTransport::open()),
            std::make_unique<backend::nft::AffinityPurger>(
                net::Family::IPv4, need(KernelTransport::open())),
            backend::nft::NftBackend::OpenFeed{},
            std::move(share));
      });
}

void virtual_servers(std::size_t services, std::size_t endpoints) {
  const auto servers = cluster(services, endpoints);
  const std::size_t all = services * (endpoints + 1);
  const desired::DesiredState plans = plans_for(servers);
  std::unique_ptr<backend::Backend> whole;
  auto ipvs = std::make_unique<FreshIpvs>();
  const auto renew = [&] {
    ipvs->floor->flush();
    ipvs = std::make_unique<FreshIpvs>();
    std::this_thread::sleep_for(std::chrono::seconds(1));  // the old namespace is taken down
  };
  measure(
      fmt::format("{} virtual servers with {} destinations each are written", services, endpoints),
      {{"bare libnl-genl, in packets", [&] { ipvs->floor->write_in_packets(servers); }, renew},
       {"bare libnl-genl, one round trip a command",
        [&] { ipvs->floor->write_one_by_one(servers); },
        renew},
       {"netlink::ipvs", [&] { write_ours(*ipvs->ours, servers); }, renew},
       {"the whole back end: addresses and nftables too",
        [&] { need(whole->apply(plans, {}).outcome); },
        [&] {
          whole.reset();
          renew();
          whole = whole_back_end();
        }}});
  whole.reset();
  measure(
      "they are read back",
      {{"bare libnl-genl", [&] { expect(ipvs->floor->read(servers), all); }},
       {"netlink::ipvs", [&] { expect(read_ours(*ipvs->ours), all); }}});
  renew();
}

void change(
    VirtualAddresses& addresses,
    const std::vector<net::IpAddress>& ips,
    const std::vector<VirtualAddresses::Change::What>& what) {
  std::vector<VirtualAddresses::Change> changes;
  for (const net::IpAddress& ip : ips) {
    for (const auto one : what) {
      changes.push_back({one, ip});
    }
  }
  std::vector<VirtualAddresses::Refused> refused;
  need(addresses.apply(changes, refused));
  if (!refused.empty()) {
    throw std::runtime_error(refused.front().error.what);
  }
}

void addresses(net::Family family, std::size_t count) {
  using What = VirtualAddresses::Change::What;
  const auto ours = need(VirtualAddresses::open(family, kMark));
  std::vector<net::IpAddress> ips;
  std::string lines;
  for (std::size_t n = 1; n <= count; ++n) {
    ips.push_back(numbered(family == net::Family::IPv4 ? "10.96.0.0" : "fd96::", n));
    const std::string ip = net::to_string(ips.back());
    lines += "address add " + ip + " dev kube-ipvs0 scope host" +
             (family == net::Family::IPv4 ? "\n" : " nodad noprefixroute\n");
    lines += "route add local " + ip + " dev lo table 12112\n";
    // Of IPv6 there is nothing yet to take away (virtual_addresses.h).
    lines += family == net::Family::IPv4 ? "route del local " + ip + " dev kube-ipvs0 table local\n"
                                         : std::string();
  }
  need(ours->set_up());
  const auto again = [&] {
    need(ours->tear_down());
    need(ours->set_up());
  };
  measure(
      fmt::format(
          "{} addresses of {} are bound, not local, with a route", count, to_string(family)),
      {{"ip -batch", [&] { ip_batch(family, lines); }, again},
       {"netlink::VirtualAddresses",
        [&] {
          change(*ours, ips, {What::Bind, What::MakeNotLocal, What::Route});
        },
        again}});
  change(*ours, ips, {What::Bind, What::MakeNotLocal, What::Route});
  measure(
      "they are listed",
      {{"bound", [&] { expect(need(ours->bound()).size(), count); }},
       {"routes", [&] { expect(need(ours->routes()).size(), count); }},
       {"local_routes, of which there are none",
        [&] { expect(need(ours->local_routes()).size(), 0); }}});
  need(ours->tear_down());
}

std::size_t number(int argc, char** argv, int at, std::size_t otherwise) {
  return argc > at ? std::strtoul(argv[at], nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  if (::geteuid() != 0) {
    fmt::print("SKIP: needs root\n");
    return 0;
  }
  try {
    if (const auto there = netlink::ipvs::Socket::open();
        !there && there.error().code == Errc::Unsupported) {
      fmt::print("SKIP: {}\n", there.error().what);
      return 0;
    }
    virtual_servers(number(argc, argv, 1, 2000), number(argc, argv, 2, 10));
    for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
      addresses(family, number(argc, argv, 3, 10'000));
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_ipvs: {}\n", error.what());
    return 1;
  }
  return 0;
}
