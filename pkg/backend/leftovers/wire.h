// The netlink messages of this folder: tables of nftables, sets of ipset, a link. Above it there
// are values.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/ip_address.h"
#include "netlink/socket.h"

namespace shunt::backend::leftovers {

// Speaks to the kernel of the network namespace that the thread was in when this was opened. One
// thread. A kernel without nf_tables or ipset answers as one that has no tables or sets.
class Wire {
 public:
  static Result<std::unique_ptr<Wire>> open();

  // Names of the tables of one family.
  Result<std::set<std::string>> nft_tables(net::Family family);
  // Names of the tables of one family that have a chain for which `wanted(table, chain)` holds.
  Result<std::set<std::string>> nft_tables_with(
      net::Family family,
      const std::function<bool(std::string_view table, std::string_view chain)>& wanted);
  // With all that is in it. False when there was none.
  Result<bool> delete_nft_table(net::Family family, std::string_view name);

  // Names of all sets of ipset.
  Result<std::vector<std::string>> ipsets();
  Result<> destroy_ipset(std::string_view name);

 private:
  explicit Wire(std::unique_ptr<netlink::Socket> socket) : socket_(std::move(socket)) {}
  using Each = std::function<void(std::span<const std::uint8_t> attributes)>;
  Result<> dump(
      std::uint16_t subsystem,
      std::uint16_t type,
      net::Family family,
      std::span<const std::uint8_t> attributes,
      const std::function<void()>& again,
      const Each& each);

  std::unique_ptr<netlink::Socket> socket_;
};

// Of the calling thread's namespace.
bool has_link(const char* name);

}  // namespace shunt::backend::leftovers
