#include "backend/ipvs/kernel.h"

#include <utility>

#include "netlink/route.h"
#include "netlink/rule_watch.h"

namespace shunt::backend::ipvs {
namespace {

class RealKernel final : public Kernel {
 public:
  RealKernel(
      net::Family family,
      std::unique_ptr<netlink::ipvs::Socket> socket,
      std::unique_ptr<netlink::VirtualAddresses> addresses,
      netlink::AddressMonitor monitor,
      netlink::RuleWatch rules)
      : family_(family),
        socket_(std::move(socket)),
        addresses_(std::move(addresses)),
        monitor_(std::move(monitor)),
        rules_(std::move(rules)) {}

  Result<std::vector<netlink::ipvs::Server>> servers() override {
    return socket_->servers(family_);
  }
  Result<std::vector<netlink::ipvs::Destination>> destinations(
      const netlink::ipvs::ServerKey& server) override {
    return socket_->destinations(server);
  }
  Result<> send(const Commands& commands, std::vector<netlink::ipvs::Refused>& refused) override {
    encoded_.clear();
    for (const Command& command : commands) {
      encode(command);
    }
    return socket_->send(encoded_, refused);
  }

  Result<> set_up() override { return addresses_->set_up(); }
  Result<bool> has_rule() override { return addresses_->has_rule(); }
  Result<std::vector<net::IpAddress>> bound() override { return addresses_->bound(); }
  Result<std::vector<net::IpAddress>> local_routes() override { return addresses_->local_routes(); }
  Result<std::vector<net::IpAddress>> routes() override { return addresses_->routes(); }
  Result<> change(
      std::span<const AddressChange> changes, std::vector<AddressRefused>& refused) override {
    return addresses_->apply(changes, refused);
  }
  Result<> tear_down() override { return addresses_->tear_down(); }

  std::set<net::IpAddress> host_addresses() const override {
    std::set<net::IpAddress> out;
    for (const netlink::HostAddress& one : monitor_.addresses()) {
      if (one.address.family == family_ && !net::is_loopback(one.address) &&
          !net::is_link_local(one.address) &&
          one.interface_name != netlink::VirtualAddresses::kDevice) {
        out.insert(one.address);
      }
    }
    return out;
  }
  int host_fd() const override { return monitor_.fd(); }
  bool take_changes() override { return monitor_.take_changes(); }
  int rules_fd() const override { return rules_.fd(); }
  bool take_rule_changes() override { return rules_.take_changes(); }

 private:
  void encode(const Command& command) {
    const netlink::ipvs::Destination real{command.real.address, command.real.weight};
    switch (command.what) {
      case Command::What::AddServer:
        return encoded_.add(command.server);
      case Command::What::ChangeServer:
        return encoded_.change(command.server);
      case Command::What::RemoveServer:
        return encoded_.remove(command.server.key);
      case Command::What::AddReal:
        return encoded_.add(command.server.key, real);
      case Command::What::ChangeReal:
        return encoded_.change(command.server.key, real);
      case Command::What::RemoveReal:
        return encoded_.remove(command.server.key, real.address);
    }
  }

  net::Family family_;
  netlink::ipvs::Commands encoded_;
  std::unique_ptr<netlink::ipvs::Socket> socket_;
  std::unique_ptr<netlink::VirtualAddresses> addresses_;
  netlink::AddressMonitor monitor_;
  netlink::RuleWatch rules_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> open_kernel(net::Family family, std::uint32_t mark) {
  auto socket = netlink::ipvs::Socket::open();
  if (!socket) {
    return fail("ipvs", socket.error());
  }
  auto addresses = netlink::VirtualAddresses::open(family, mark);
  if (!addresses) {
    return fail("ipvs", addresses.error());
  }
  auto monitor = netlink::AddressMonitor::open();
  if (!monitor) {
    return fail("ipvs", monitor.error());
  }
  auto rules = netlink::RuleWatch::open(family);
  if (!rules) {
    return fail("ipvs", rules.error());
  }
  return std::make_unique<RealKernel>(
      family, std::move(*socket), std::move(*addresses), std::move(*monitor), std::move(*rules));
}

}  // namespace shunt::backend::ipvs
