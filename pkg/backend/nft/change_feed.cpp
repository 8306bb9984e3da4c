#include "backend/nft/change_feed.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <utility>

#include "netlink/attributes.h"
#include "netlink/listener.h"

namespace shunt::backend::nft {
namespace {

using netlink::AttributeBytes;
using Of = ForeignChange::Of;

// One of these is enough to know that everything must be looked at.
constexpr std::size_t kMostChanges = 10'000;

std::string text(AttributeBytes attributes, std::uint16_t type) {
  const auto found = netlink::find_attribute(attributes, type);
  return found ? std::string(netlink::attribute_text(*found)) : std::string();
}

struct Kind {
  Of of;
  bool removed;
  std::uint16_t table;  // attribute with the table's name
  std::uint16_t name;   // and with the name of what changed; 0: none
};

std::optional<Kind> kind_of(std::uint16_t type) {
  switch (type) {
    case NFT_MSG_NEWTABLE:
    case NFT_MSG_DELTABLE:
      return Kind{Of::Table, type == NFT_MSG_DELTABLE, NFTA_TABLE_NAME, 0};
    case NFT_MSG_NEWSET:
    case NFT_MSG_DELSET:
      return Kind{Of::Set, type == NFT_MSG_DELSET, NFTA_SET_TABLE, NFTA_SET_NAME};
    case NFT_MSG_NEWCHAIN:
    case NFT_MSG_DELCHAIN:
      return Kind{Of::Chain, type == NFT_MSG_DELCHAIN, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME};
    case NFT_MSG_NEWRULE:
    case NFT_MSG_DELRULE:
      return Kind{Of::Rule, type == NFT_MSG_DELRULE, NFTA_RULE_TABLE, NFTA_RULE_CHAIN};
    case NFT_MSG_NEWSETELEM:
    case NFT_MSG_DELSETELEM:
      return Kind{
          Of::Element,
          type == NFT_MSG_DELSETELEM,
          NFTA_SET_ELEM_LIST_TABLE,
          NFTA_SET_ELEM_LIST_SET};
    default:
      return std::nullopt;  // objects and flow tables, of which we have none
  }
}

KeyBytes key_of(AttributeBytes item) {
  KeyBytes out;
  const auto key = netlink::find_attribute(item, NFTA_SET_ELEM_KEY);
  const auto value = key ? netlink::find_attribute(*key, NFTA_DATA_VALUE) : std::nullopt;
  if (value && value->size() <= out.bytes.size()) {
    out.append(value->data(), value->size());
  }
  return out;
}

void take_elements(
    const netlink::Notification& seen, const ForeignChange& change, ForeignChanges& out) {
  const auto list = netlink::find_attribute(seen.attributes, NFTA_SET_ELEM_LIST_ELEMENTS);
  if (!list) {
    return;
  }
  netlink::for_each_attribute(*list, [&](std::uint16_t, AttributeBytes item) {
    out.changes.push_back(change);
    out.changes.back().key = key_of(item);
  });
}

// Who asked for the transaction. Comes after its changes.
std::string author_of(AttributeBytes generation) {
  const auto pid = netlink::find_attribute(generation, NFTA_GEN_PROC_PID);
  const std::string name = text(generation, NFTA_GEN_PROC_NAME);
  return pid ? name + " (pid " + std::to_string(netlink::attribute_be32(*pid)) + ")" : name;
}

}  // namespace

KernelChangeFeed::KernelChangeFeed(net::Family family, std::unique_ptr<netlink::Listener> listener)
    : family_(family == net::Family::IPv4 ? NFPROTO_IPV4 : NFPROTO_IPV6),
      listener_(std::move(listener)) {}

KernelChangeFeed::~KernelChangeFeed() = default;

Result<std::unique_ptr<ChangeFeed>> KernelChangeFeed::open(
    net::Family family, std::span<const std::uint32_t> own_ports) {
  auto listener = netlink::Listener::open(NFNLGRP_NFTABLES, own_ports);
  if (!listener) {
    return tl::unexpected(listener.error());
  }
  return std::make_unique<KernelChangeFeed>(family, std::move(*listener));
}

int KernelChangeFeed::fd() const { return listener_->fd(); }

ForeignChanges KernelChangeFeed::take() {
  ForeignChanges out;
  bool ours = false;  // something in the transaction that is being read
  const auto done = listener_->receive([&](const netlink::Notification& seen) {
    if (seen.type == NFT_MSG_NEWGEN) {
      if (std::exchange(ours, false)) {
        out.author = author_of(seen.attributes);
      }
      return;
    }
    const auto kind = kind_of(seen.type);
    if (seen.family != family_ || !kind || text(seen.attributes, kind->table) != kTable) {
      return;
    }
    ours = true;
    if (out.changes.size() >= kMostChanges) {
      out.lost = true;
      return;
    }
    ForeignChange change;
    change.of = kind->of;
    change.removed = kind->removed;
    if (kind->name != 0) {
      change.name = text(seen.attributes, kind->name);
    }
    if (change.of == Of::Element) {
      take_elements(seen, change, out);
    } else {
      out.changes.push_back(std::move(change));
    }
  });
  out.lost = out.lost || !done;
  return out;
}

}  // namespace shunt::backend::nft
