#include "backend/ipvs/withdrawal.h"

#include <net/if.h>

#include <algorithm>
#include <utility>

#include "netlink/delivery_rule.h"
#include "netlink/interface_addresses.h"

namespace shunt::backend::ipvs {
namespace {

using netlink::VirtualAddresses;
using Change = VirtualAddresses::Change;

// What one pass found to be idle the next one removes: silence, removal, unbinding, and one to see
// that nothing is left.
constexpr int kMostPasses = 4;
// Rules are found by their table, so the mark does not matter here.
constexpr std::uint32_t kNoMark = 0;

void note(std::vector<std::string>& failed, const Error& error) {
  if (error.code != Errc::NotFound) {  // somebody else was faster
    failed.push_back(error.what);
  }
}

Result<> command(
    netlink::ipvs::Socket* servers, const Withdrawing& todo, std::vector<std::string>& failed) {
  netlink::ipvs::Commands commands;
  for (const auto& [server, destination] : todo.silence) {
    commands.change(server, destination);
  }
  for (const auto& [server, destination] : todo.destinations) {
    commands.remove(server, destination);
  }
  for (const netlink::ipvs::ServerKey& server : todo.servers) {
    commands.remove(server);
  }
  if (commands.empty() || servers == nullptr) {
    return {};
  }
  std::vector<netlink::ipvs::Refused> refused;
  if (auto sent = servers->send(commands, refused); !sent) {
    return sent;
  }
  for (const netlink::ipvs::Refused& one : refused) {
    note(failed, one.error);
  }
  return {};
}

Result<> change(
    VirtualAddresses& addresses,
    const std::vector<Change>& changes,
    std::vector<std::string>& failed) {
  std::vector<VirtualAddresses::Refused> refused;
  if (auto applied = addresses.apply(changes, refused); !applied) {
    return applied;
  }
  for (const VirtualAddresses::Refused& one : refused) {
    note(failed, one.error);
  }
  return {};
}

void count(std::string& text, std::size_t number, const char* one, const char* many) {
  if (number != 0) {
    text.append(text.empty() ? "" : ", ").append(std::to_string(number)).append(" ");
    text.append(number == 1 ? one : many);
  }
}

}  // namespace

struct Withdrawal::Side {
  net::Family family = net::Family::IPv4;
  std::unique_ptr<VirtualAddresses> addresses;
};

Withdrawal::Withdrawal(Options options) : options_(std::move(options)) {}
Withdrawal::~Withdrawal() = default;

bool Withdrawal::is_needed() { return ::if_nametoindex(VirtualAddresses::kDevice) != 0; }

Result<std::unique_ptr<Withdrawal>> Withdrawal::open(Options options) {
  std::unique_ptr<Withdrawal> made(new Withdrawal(std::move(options)));
  for (const net::Family family : made->options_.families) {
    auto addresses = VirtualAddresses::open(family, kNoMark);
    if (!addresses) {
      return tl::unexpected(addresses.error());
    }
    made->sides_.push_back({family, std::move(*addresses)});
  }
  if (is_needed()) {
    auto servers = netlink::ipvs::Socket::open();
    if (servers) {
      made->servers_ = std::move(*servers);
    } else if (servers.error().code != Errc::Unsupported) {
      return tl::unexpected(servers.error());
    }
  }
  return made;
}

// Where IPVS's own mode had marked packets, and the addresses are not local otherwise. kube-proxy's
// are, so that this changes nothing for them.
Result<> Withdrawal::begin() {
  if (!is_needed()) {
    return {};
  }
  for (Side& side : sides_) {
    const auto bound = side.addresses->bound();
    const auto local = bound ? side.addresses->local_routes() : bound;
    if (!local) {
      return tl::unexpected(local.error());
    }
    std::vector<Change> changes;
    for (const net::IpAddress& address : *bound) {
      if (!std::ranges::binary_search(*local, address)) {
        changes.push_back({Change::What::Route, address});
      }
    }
    if (changes.empty()) {
      continue;
    }
    std::vector<std::string> failed;
    if (auto applied = change(*side.addresses, changes, failed); !applied) {
      return applied;
    }
    if (!failed.empty()) {
      return fail(Errc::Again, failed.front());
    }
    if (auto delivered = netlink::deliver_unmarked(side.family); !delivered) {
      return delivered;
    }
  }
  return {};
}

Result<Holdings> Withdrawal::look(Side& side) {
  Holdings out;
  out.device = is_needed();
  if (!out.device) {
    return out;
  }
  auto bound = side.addresses->bound();
  if (!bound) {
    return tl::unexpected(bound.error());
  }
  out.bound = std::move(*bound);
  auto host = netlink::interface_addresses();
  if (!host) {
    return tl::unexpected(host.error());
  }
  out.host = std::move(*host);
  if (!servers_) {
    return out;
  }
  auto servers = servers_->servers(side.family);
  if (!servers) {
    return tl::unexpected(servers.error());
  }
  for (const netlink::ipvs::Server& server : *servers) {
    Holdings::OfServer& one = out.servers.emplace_back();
    one.server = server.key;
    if (!is_of_services(server.key.address.ip, out, options_.exclude_cidrs)) {
      continue;  // what it has is nobody's business
    }
    auto destinations = servers_->destinations(server.key);
    if (destinations) {
      one.destinations = std::move(*destinations);
    } else if (destinations.error().code == Errc::NotFound) {
      out.servers.pop_back();
    } else {
      return tl::unexpected(destinations.error());
    }
  }
  return out;
}

// Whether there may be more to do at once.
Result<bool> Withdrawal::pass(Side& side, bool now, Progress& progress) {
  const auto held = look(side);
  if (!held) {
    return tl::unexpected(held.error());
  }
  const auto& excluded = options_.exclude_cidrs;
  progress.left += remaining(*held, excluded);
  const Withdrawing todo = now ? withdraw_now(*held, excluded) : withdraw(*held, excluded);
  if (todo.empty()) {
    return false;
  }
  const std::size_t failures = progress.failed.size();
  if (auto done = command(servers_.get(), todo, progress.failed); !done) {
    return tl::unexpected(done.error());
  }
  std::vector<Change> changes;
  for (const net::IpAddress& address : todo.addresses) {
    changes.push_back({Change::What::Unbind, address});
    changes.push_back({Change::What::Unroute, address});
  }
  if (auto done = change(*side.addresses, changes, progress.failed); !done) {
    return tl::unexpected(done.error());
  }
  return progress.failed.size() == failures;
}

Result<Withdrawal::Progress> Withdrawal::passes(bool now) {
  Progress progress;
  bool more = true;
  for (int i = 0; i < kMostPasses && more; ++i) {
    progress = {};
    more = false;
    for (Side& side : sides_) {
      const auto passed = pass(side, now, progress);
      if (!passed) {
        return tl::unexpected(passed.error());
      }
      more = more || *passed;
    }
  }
  const Remaining& left = progress.left;
  progress.done = progress.failed.empty() && left.servers == 0 && left.addresses == 0;
  if (progress.done && left.excluded_addresses == 0) {
    for (Side& side : sides_) {
      if (auto gone = side.addresses->tear_down(); !gone) {
        progress.done = false;
        progress.failed.push_back(gone.error().what);
      }
    }
  }
  return progress;
}

Result<Withdrawal::Progress> Withdrawal::step() { return passes(false); }

Result<> Withdrawal::remove_now() {
  const auto progress = passes(true);
  if (!progress) {
    return tl::unexpected(progress.error());
  }
  if (!progress->done) {
    return fail(
        Errc::Again,
        progress->failed.empty() ? "what IPVS left comes again: " + progress->summary()
                                 : progress->failed.front());
  }
  return {};
}

std::string Withdrawal::Progress::summary() const {
  std::string out;
  count(out, left.servers, "virtual server", "virtual servers");
  count(out, left.connections, "connection", "connections");
  count(out, left.addresses, "address", "addresses");
  count(out, left.excluded_addresses, "excluded address", "excluded addresses");
  return out.empty() ? "nothing" : out;
}

}  // namespace shunt::backend::ipvs
