// A kernel in memory, as the IPVS back end sees it: virtual servers with the errors of the real
// one, and addresses with the routes that the real one makes by itself.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "backend/ipvs/kernel.h"

namespace shunt::test {

struct FakeIpvs {
  struct Real {
    std::uint32_t weight = 1;
    std::uint32_t active = 0;
    std::uint32_t inactive = 0;
  };
  struct Server {
    netlink::ipvs::Server attributes;
    std::map<net::SocketAddress, Real> reals;
  };
  std::map<netlink::ipvs::ServerKey, Server> servers;
  std::set<net::IpAddress> bound;
  std::set<net::IpAddress> local;
  std::set<net::IpAddress> routed;
  std::set<net::IpAddress> host;
  std::set<std::string> schedulers{"rr", "wrr", "lc", "sh", "mh"};
  bool host_changed = false;
  bool rules_changed = false;
  bool set_up = false;  // device and rule

  // What happened.
  std::size_t commands = 0;
  std::vector<std::string> story;  // "add 10.0.0.1:80", "table"...
  // An error: this command is refused with it.
  std::function<std::optional<Errc>(const backend::ipvs::Command&)> judge;
};

class FakeIpvsKernel final : public backend::ipvs::Kernel {
 public:
  using Command = backend::ipvs::Command;
  explicit FakeIpvsKernel(std::shared_ptr<FakeIpvs> state) : state_(std::move(state)) {}

  Result<std::vector<netlink::ipvs::Server>> servers() override {
    std::vector<netlink::ipvs::Server> out;
    for (const auto& [key, server] : state_->servers) {
      out.push_back(server.attributes);
    }
    return out;
  }
  Result<std::vector<netlink::ipvs::Destination>> destinations(
      const netlink::ipvs::ServerKey& key) override {
    const auto found = state_->servers.find(key);
    if (found == state_->servers.end()) {
      return fail(Errc::NotFound, "no such server");
    }
    std::vector<netlink::ipvs::Destination> out;
    for (const auto& [address, real] : found->second.reals) {
      out.push_back({address, real.weight, 0, real.active, real.inactive});
    }
    return out;
  }
  Result<> send(
      const backend::ipvs::Commands& commands,
      std::vector<netlink::ipvs::Refused>& refused) override {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      ++state_->commands;
      const auto verdict = state_->judge && state_->judge(commands[i]) ? state_->judge(commands[i])
                                                                       : obey(commands[i]);
      if (verdict) {
        refused.push_back({i, Error{*verdict, 0, "refused"}});
      }
    }
    return {};
  }

  Result<> set_up() override {
    state_->set_up = true;
    return {};
  }
  Result<bool> has_rule() override { return state_->set_up; }
  Result<std::vector<net::IpAddress>> bound() override { return list(state_->bound); }
  Result<std::vector<net::IpAddress>> local_routes() override { return list(state_->local); }
  Result<std::vector<net::IpAddress>> routes() override { return list(state_->routed); }
  Result<> change(
      std::span<const AddressChange> changes, std::vector<AddressRefused>& refused) override {
    (void)refused;
    using What = AddressChange::What;
    for (const AddressChange& change : changes) {
      const net::IpAddress& ip = change.address;
      switch (change.what) {
        case What::Bind:
          state_->bound.insert(ip);
          state_->local.insert(ip);
          break;
        case What::Unbind:
          state_->bound.erase(ip);
          state_->local.erase(ip);
          break;
        case What::Route:
          state_->routed.insert(ip);
          break;
        case What::Unroute:
          state_->routed.erase(ip);
          break;
        case What::MakeLocal:
          state_->local.insert(ip);
          break;
        case What::MakeNotLocal:
          state_->local.erase(ip);
          break;
      }
    }
    return {};
  }
  Result<> tear_down() override {
    state_->bound.clear();
    state_->local.clear();
    state_->routed.clear();
    state_->set_up = false;
    return {};
  }
  std::set<net::IpAddress> host_addresses() const override { return state_->host; }
  int host_fd() const override { return -1; }
  bool take_changes() override { return std::exchange(state_->host_changed, false); }
  int rules_fd() const override { return -1; }
  bool take_rule_changes() override { return std::exchange(state_->rules_changed, false); }

 private:
  static std::vector<net::IpAddress> list(const std::set<net::IpAddress>& from) {
    return {from.begin(), from.end()};
  }

  std::optional<Errc> obey(const Command& command) {
    using What = Command::What;
    const netlink::ipvs::ServerKey& key = command.server.key;
    const auto server = state_->servers.find(key);
    const bool there = server != state_->servers.end();
    if (command.what == What::AddServer) {
      if (!state_->schedulers.contains(command.server.scheduler)) {
        return Errc::Unsupported;
      }
      state_->story.push_back("add " + net::to_string(key.address));
      return state_->servers.try_emplace(key, FakeIpvs::Server{command.server, {}}).second
                 ? std::nullopt
                 : std::optional(Errc::Exists);
    }
    if (!there) {
      return Errc::NotFound;
    }
    auto& reals = server->second.reals;
    const net::SocketAddress& address = command.real.address;
    switch (command.what) {
      case What::ChangeServer:
        server->second.attributes = command.server;
        return std::nullopt;
      case What::RemoveServer:
        state_->story.push_back("remove " + net::to_string(key.address));
        state_->servers.erase(server);
        return std::nullopt;
      case What::AddReal:
        state_->story.push_back("real " + net::to_string(address));
        return reals.try_emplace(address, FakeIpvs::Real{command.real.weight, 0, 0}).second
                   ? std::nullopt
                   : std::optional(Errc::Exists);
      case What::ChangeReal:
        if (!reals.contains(address)) {
          return Errc::NotFound;
        }
        reals[address].weight = command.real.weight;
        return std::nullopt;
      case What::RemoveReal:
        return reals.erase(address) > 0 ? std::nullopt : std::optional(Errc::NotFound);
      default:
        return Errc::Invalid;
    }
  }

  std::shared_ptr<FakeIpvs> state_;
};

}  // namespace shunt::test
