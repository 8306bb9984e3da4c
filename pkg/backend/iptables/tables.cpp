#include "backend/iptables/tables.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
// After netinet/in.h, whose types they would define again.
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "backend/leftovers/iptables_tool.h"
#include "base/unique_fd.h"
#include "netlink/attributes.h"
#include "netlink/messages.h"
#include "netlink/socket.h"

namespace shunt::backend::iptables {
namespace {

using leftovers::IptablesTool;
using leftovers::IptablesVersion;

// IP6T_SO_GET_INFO has the same number, and struct ip6t_getinfo the same shape
// (include/uapi/linux/netfilter_ipv6/ip6_tables.h); that header cannot be included beside the
// other.
constexpr int kGetInfo = IPT_SO_GET_INFO;

// FNV-1a.
class Digest {
 public:
  void add(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) {
      value_ = (value_ ^ byte) * 0x100000001b3ULL;
    }
  }
  void add(std::string_view text) {
    for (const char c : text) {
      value_ = (value_ ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

// Our chains, and those that lead to them.
bool is_looked_at(std::string_view chain) {
  return chain.starts_with("KUBE-") || chain == "INPUT" || chain == "FORWARD" ||
         chain == "OUTPUT" || chain == "PREROUTING" || chain == "POSTROUTING";
}

class KernelTables final : public Tables {
 public:
  KernelTables(VariantKind kind, net::Family family, IptablesTool tool)
      : kind_(kind), family_(family), tool_(std::move(tool)) {}

  Result<> open() {
    if (kind_ == VariantKind::Nft) {
      auto socket = netlink::Socket::open();
      if (!socket) {
        return tl::unexpected(socket.error());
      }
      socket_ = std::move(*socket);
      return {};
    }
    const bool ipv4 = family_ == net::Family::IPv4;
    raw_.reset(::socket(ipv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
    if (!raw_) {
      return netlink::sys_fail(
          "a raw socket, to see the tables of iptables-legacy (needs CAP_NET_RAW)", errno);
    }
    return {};
  }

  Result<std::string> save(Table table) override {
    // The legacy variant would make a table by looking, which is harmless here: we are about to use
    // it.
    return tool_.save(to_string(table));
  }

  Result<> restore(const std::string& text) override { return tool_.restore(text); }

  std::optional<std::uint64_t> generation() override {
    return kind_ == VariantKind::Nft ? transactions() : sizes();
  }

  bool counts_commits() const override { return kind_ == VariantKind::Nft; }

  std::optional<std::uint64_t> fingerprint() override {
    if (kind_ != VariantKind::Nft) {
      return std::nullopt;
    }
    Digest digest;
    for (const Table table : {Table::Filter, Table::Nat}) {
      const auto name_of = [](netlink::AttributeBytes message, std::uint16_t attribute) {
        const auto found = netlink::find_attribute(message, attribute);
        return found ? netlink::attribute_text(*found) : std::string_view();
      };
      const auto chains =
          look(table, NFT_MSG_GETCHAIN, NFTA_CHAIN_TABLE, [&](netlink::AttributeBytes message) {
            // The kernel lists the chains of all tables of the family.
            const std::string_view chain = name_of(message, NFTA_CHAIN_NAME);
            if (is_looked_at(chain) && name_of(message, NFTA_CHAIN_TABLE) == to_string(table)) {
              digest.add(chain);
            }
          });
      // A rule that is changed is another one, with another handle.
      const auto rules =
          look(table, NFT_MSG_GETRULE, NFTA_RULE_TABLE, [&](netlink::AttributeBytes message) {
            const std::string_view chain = name_of(message, NFTA_RULE_CHAIN);
            const auto handle = netlink::find_attribute(message, NFTA_RULE_HANDLE);
            if (is_looked_at(chain) && handle) {
              digest.add(chain);
              digest.add(*handle);
            }
          });
      if (!chains || !rules) {
        return std::nullopt;
      }
    }
    return digest.value();
  }

 private:
  template <typename Each>
  Result<> look(Table table, std::uint16_t type, std::uint16_t table_attribute, const Each& each) {
    netlink::Attributes request;
    request.put_string(table_attribute, to_string(table));
    const std::uint8_t family = family_ == net::Family::IPv4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
    return socket_->dump(NFNL_SUBSYS_NFTABLES, type, family, request.bytes(), each);
  }

  std::optional<std::uint64_t> transactions() {
    std::optional<std::uint64_t> out;
    netlink::Messages question(NFNL_SUBSYS_NFTABLES);
    question.begin(NFT_MSG_GETGEN, 0, AF_UNSPEC);
    question.end();
    question.ask_for_answer();
    std::vector<netlink::MessageError> errors;
    (void)socket_->ask(  // no answer: nothing can be told
        question,
        errors,
        [&](netlink::AttributeBytes attributes) {
          if (const auto id = netlink::find_attribute(attributes, NFTA_GEN_ID)) {
            out = netlink::attribute_be32(*id);
          }
        });
    return out;
  }

  std::optional<std::uint64_t> sizes() {
    std::uint64_t out = 0;
    for (const Table table : {Table::Filter, Table::Nat}) {
      ipt_getinfo info{};
      const std::string_view name = to_string(table);
      std::ranges::copy(name, info.name);
      socklen_t size = sizeof info;
      const int level = family_ == net::Family::IPv4 ? IPPROTO_IP : IPPROTO_IPV6;
      if (::getsockopt(raw_.get(), level, kGetInfo, &info, &size) != 0) {
        return std::nullopt;
      }
      out = out * 0x9e3779b97f4a7c15ULL + (std::uint64_t{info.num_entries} << 32 | info.size);
    }
    return out;
  }

  VariantKind kind_;
  net::Family family_;
  IptablesTool tool_;
  std::unique_ptr<netlink::Socket> socket_;  // nft
  UniqueFd raw_;                             // legacy
};

}  // namespace

Result<Listing> read_tables(Tables& tables) {
  Listing out;
  for (const Table table : {Table::Filter, Table::Nat}) {
    const auto text = tables.save(table);
    if (!text) {
      return tl::unexpected(text.error());
    }
    if (auto done = read_listing(table, *text, out); !done) {
      return tl::unexpected(done.error());
    }
  }
  return out;
}

Result<std::unique_ptr<Tables>> open_tables(VariantKind kind, net::Family family) {
  auto tool = IptablesTool::find({kind, family}, -1);
  if (!tool) {
    return tl::unexpected(tool.error());
  }
  const auto version = tool->version();
  if (!version) {
    return tl::unexpected(version.error());
  }
  constexpr IptablesVersion kOldest{1, 6, 2};
  if (*version < kOldest) {
    return fail(
        Errc::Unsupported,
        to_string(leftovers::Variant{kind, family}) + " is older than 1.6.2, which we need");
  }
  auto tables = std::make_unique<KernelTables>(kind, family, std::move(*tool));
  if (auto done = tables->open(); !done) {
    return tl::unexpected(done.error());
  }
  return tables;
}

}  // namespace shunt::backend::iptables
