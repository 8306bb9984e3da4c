#include "backend/leftovers/wire.h"

#include <linux/netfilter.h>
#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "netlink/attributes.h"
#include "netlink/batch.h"
#include "netlink/messages.h"

namespace shunt::backend::leftovers {
namespace {

using netlink::AttributeBytes;

constexpr int kTries = 5;  // of a dump that a change of the tables interrupts
// The oldest protocol of ipset that every kernel still speaks.
constexpr std::uint8_t kIpsetProtocol = 6;

std::uint8_t family_number(net::Family family) {
  return family == net::Family::IPv4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

// What a kernel says that has no such subsystem.
bool is_absent(const Error& error) {
  return error.sys_errno == EINVAL || error.sys_errno == EOPNOTSUPP ||
         error.sys_errno == EPROTONOSUPPORT || error.sys_errno == EAFNOSUPPORT;
}

std::string text_of(AttributeBytes message, std::uint16_t attribute) {
  const auto found = netlink::find_attribute(message, attribute);
  return found ? std::string(netlink::attribute_text(*found)) : std::string();
}

}  // namespace

Result<std::unique_ptr<Wire>> Wire::open() {
  auto socket = netlink::Socket::open();
  if (!socket) {
    return tl::unexpected(socket.error());
  }
  return std::unique_ptr<Wire>(new Wire(std::move(*socket)));
}

// `again` forgets what an interrupted dump told.
Result<> Wire::dump(
    std::uint16_t subsystem,
    std::uint16_t type,
    net::Family family,
    std::span<const std::uint8_t> attributes,
    const std::function<void()>& again,
    const Each& each) {
  for (int left = kTries;; --left) {
    again();
    auto done = socket_->dump(subsystem, type, family_number(family), attributes, each);
    if (done || is_absent(done.error())) {
      return {};
    }
    if (done.error().code != Errc::Again || left == 1) {
      return done;
    }
  }
}

Result<std::set<std::string>> Wire::nft_tables(net::Family family) {
  std::set<std::string> out;
  auto done = dump(
      NFNL_SUBSYS_NFTABLES,
      NFT_MSG_GETTABLE,
      family,
      {},
      [&] { out.clear(); },
      [&](AttributeBytes message) { out.insert(text_of(message, NFTA_TABLE_NAME)); });
  return done.map([&] { return std::move(out); });
}

Result<std::set<std::string>> Wire::nft_tables_with(
    net::Family family,
    const std::function<bool(std::string_view table, std::string_view chain)>& wanted) {
  std::set<std::string> out;
  auto done = dump(
      NFNL_SUBSYS_NFTABLES,
      NFT_MSG_GETCHAIN,
      family,
      {},
      [&] { out.clear(); },
      [&](AttributeBytes message) {
        const std::string table = text_of(message, NFTA_CHAIN_TABLE);
        if (!out.contains(table) && wanted(table, text_of(message, NFTA_CHAIN_NAME))) {
          out.insert(table);
        }
      });
  return done.map([&] { return std::move(out); });
}

Result<bool> Wire::delete_nft_table(net::Family family, std::string_view name) {
  netlink::Batch batch(NFNL_SUBSYS_NFTABLES);
  batch.begin(NFT_MSG_DELTABLE, 0, family_number(family));
  batch.put_string(NFTA_TABLE_NAME, name);
  batch.end();
  const auto done = socket_->commit(batch);
  if (!done && done.error().sys_errno == ENOENT) {
    return false;
  }
  return done.map([] { return true; });
}

Result<std::vector<std::string>> Wire::ipsets() {
  netlink::Attributes request;
  request.put_u8(IPSET_ATTR_PROTOCOL, kIpsetProtocol);
  request.put_be32(IPSET_ATTR_FLAGS, IPSET_FLAG_LIST_SETNAME);
  std::vector<std::string> out;
  auto done = dump(
      NFNL_SUBSYS_IPSET,
      IPSET_CMD_LIST,
      net::Family::IPv4,  // sets of all families come
      request.bytes(),
      [&] { out.clear(); },
      [&](AttributeBytes message) { out.push_back(text_of(message, IPSET_ATTR_SETNAME)); });
  return done.map([&] { return std::move(out); });
}

Result<> Wire::destroy_ipset(std::string_view name) {
  netlink::Messages messages(NFNL_SUBSYS_IPSET);
  messages.begin(IPSET_CMD_DESTROY, 0, NFPROTO_IPV4);
  messages.put_u8(IPSET_ATTR_PROTOCOL, kIpsetProtocol);
  messages.put_string(IPSET_ATTR_SETNAME, name);
  messages.end();
  std::vector<netlink::MessageError> errors;
  if (auto done = socket_->send_each(messages, errors); !done) {
    return done;
  }
  if (errors.empty() || errors.front().sys_errno == ENOENT) {
    return {};
  }
  // ipset has error numbers of its own above 4096; BUSY is the first of use here.
  const int number = errors.front().sys_errno;
  const bool busy = number == EBUSY || number == IPSET_ERR_BUSY;
  return fail(
      Errc::Again,
      busy ? "a rule still uses it" : "error " + std::to_string(number) + " of the kernel",
      busy ? EBUSY : number);
}

bool has_link(const char* name) { return ::if_nametoindex(name) != 0; }

}  // namespace shunt::backend::leftovers
