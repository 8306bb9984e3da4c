#include "backend/leftovers/leftovers.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "backend/leftovers/iptables_plan.h"
#include "backend/leftovers/iptables_tool.h"
#include "backend/leftovers/kube_proxy_names.h"
#include "backend/leftovers/save_reader.h"
#include "backend/leftovers/wire.h"
#include "base/log.h"
#include "netlink/delivery_rule.h"

namespace shunt::backend::leftovers {
namespace {

using log::kv;

constexpr net::Family kFamilies[] = {net::Family::IPv4, net::Family::IPv6};
constexpr int kTries = 3;  // of a table that others change meanwhile
// The kernel lets go of the sets of removed rules a moment later.
constexpr int kBusyTries = 20;
constexpr int kBusyPauseMillis = 25;

std::string nft_table_name(net::Family family) {
  return std::string("nftables: table ") + (family == net::Family::IPv4 ? "ip " : "ip6 ") +
         kNftTable;
}

std::string sentence(std::string subject, const std::string& rest) {
  subject += ": ";
  subject += rest;
  return subject;
}

// kube-shunt's IPVS mode has a device of the same name, and rules that lead to it.
Result<bool> has_kube_proxy_link() {
  if (!has_link(kIpvsLink)) {
    return false;
  }
  for (const net::Family family : kFamilies) {
    const auto ours = netlink::has_delivery_rule(family);
    // A kernel without IPv6 has no rules of it.
    if (!ours && ours.error().code != Errc::Unsupported) {
      return tl::unexpected(ours.error());
    }
    if (ours && *ours) {
      return false;
    }
  }
  return true;
}

Result<std::vector<std::string>> kube_proxy_sets(Wire& wire) {
  // Not asked where nobody has used ipset: the question would load its module.
  if (::access("/sys/module/ip_set", F_OK) != 0) {
    return std::vector<std::string>{};
  }
  auto names = wire.ipsets();
  if (names) {
    std::erase_if(*names, [](const std::string& name) { return !is_kube_proxy_set(name); });
  }
  return names;
}

IptablesMode mode_in(const Variant& variant, std::optional<Variant::Kind> ours) {
  return variant.kind == ours ? IptablesMode::Ours : IptablesMode::KubeProxys;
}

// Whether kube-proxy has a chain there; for the legacy variant its program has to be asked.
Result<bool> has_chains(Wire& wire, const Variant& variant, IptablesMode mode) {
  const auto tables = candidate_tables(wire, variant, mode);
  if (!tables) {
    return tl::unexpected(tables.error());
  }
  if (variant.kind == Variant::Kind::Nft || tables->empty()) {
    return !tables->empty();
  }
  const auto tool = IptablesTool::find(variant, -1);
  if (!tool) {
    return tl::unexpected(tool.error());
  }
  for (const std::string& table : *tables) {
    const auto text = tool->save(table);
    if (!text) {
      return tl::unexpected(text.error());
    }
    if (has_kube_proxy_chain(*text, mode)) {
      return true;
    }
  }
  return false;
}

class Removal {
 public:
  Removal(Wire& wire, const RemovalOptions& options) : wire_(wire), options_(options) {}

  void nftables() {
    for (const net::Family family : kFamilies) {
      const auto tables = wire_.nft_tables(family);
      if (!tables) {
        failed(nft_table_name(family), tables.error().what);
      } else if (tables->contains(kNftTable)) {
        const auto gone = wire_.delete_nft_table(family, kNftTable);
        if (!gone) {
          failed(nft_table_name(family), gone.error().what);
        } else if (*gone) {
          report_.removed.push_back(nft_table_name(family));
        }
      }
    }
  }

  void iptables(const Variant& variant) {
    const IptablesMode mode = mode_in(variant, options_.ours);
    const auto tables = candidate_tables(wire_, variant, mode);
    if (!tables) {
      failed(to_string(variant), tables.error().what);
      return;
    }
    if (tables->empty()) {
      return;
    }
    const auto tool = IptablesTool::find(variant, options_.stop_fd);
    if (!tool) {
      missing_tool(variant, *tables, tool.error());
      return;
    }
    for (const std::string& table : *tables) {
      const std::string subject = sentence(to_string(variant), table);
      Result<> done;
      for (int left = kTries; left > 0; --left) {
        done = clean_table(*tool, table, mode, subject);
        if (done || done.error().sys_errno == ECANCELED) {
          break;
        }
      }
      if (!done) {
        failed(subject, done.error().what);
      }
    }
  }

  // After the chains, which use the sets.
  void ipvs() {
    link();
    const auto sets = kube_proxy_sets(wire_);
    if (!sets) {
      failed("ipvs: sets", sets.error().what);
      return;
    }
    for (const std::string& name : *sets) {
      destroy(name);
    }
  }

  Report take() { return std::move(report_); }

 private:
  void failed(std::string subject, const std::string& why) {
    report_.failed.push_back(sentence(std::move(subject), why));
  }

  // Of the nft variant we know that chains are there; of the legacy one only that tables are.
  void missing_tool(
      const Variant& variant, const std::vector<std::string>& tables, const Error& error) {
    log::debug(
        "tables that cannot be looked into",
        {kv("variant", to_string(variant)), kv("tables", tables.size()), kv("why", error.what)});
    if (variant.kind == Variant::Kind::Nft) {
      for (const std::string& table : tables) {
        failed(sentence(to_string(variant), table), "chains of kube-proxy, and " + error.what);
      }
    } else {
      report_.left.push_back(sentence(
          to_string(variant), "its tables may hold chains of kube-proxy, and " + error.what));
    }
  }

  // Reads, plans and writes one table; another try begins with the reading.
  Result<> clean_table(
      const IptablesTool& tool,
      const std::string& table,
      IptablesMode mode,
      const std::string& subject) {
    const auto text = tool.save(table);
    if (!text) {
      return tl::unexpected(text.error());
    }
    const RemovalPlan plan = plan_removal(*text, mode);
    if (!plan.issues.empty()) {
      return fail(Errc::Again, plan.issues.front());
    }
    for (const TablePlan& part : plan.tables) {
      if (!part.restore.empty()) {
        if (auto done = tool.restore(part.restore); !done) {
          return done;
        }
        report_.removed.push_back(sentence(
            subject,
            std::to_string(part.chains.size()) + " chains, " + std::to_string(part.jumps) +
                " jumps"));
      }
      for (const KeptChain& kept : part.kept) {
        std::string why = "chain " + kept.chain;
        if (kept.leads_to > 0) {
          why.append(" and ").append(std::to_string(kept.leads_to)).append(" that it leads to");
        }
        why.append(", because of a rule that is not kube-proxy's: ").append(kept.rule);
        report_.left.push_back(sentence(subject, why));
      }
    }
    return {};
  }

  void link() {
    if (!options_.remove_ipvs || !has_link(kIpvsLink)) {
      return;
    }
    const std::string subject =
        sentence("ipvs", std::string("link ") + kIpvsLink + " and its virtual servers");
    const auto theirs = has_kube_proxy_link();
    if (!theirs) {
      failed(subject, theirs.error().what);
    } else if (!*theirs) {
      report_.left.push_back(sentence(subject, "kube-shunt's own, which --cleanup removes"));
    } else if (const auto gone = options_.remove_ipvs(); !gone) {
      failed(subject, gone.error().what);
    } else {
      report_.removed.push_back(subject);
    }
  }

  void destroy(const std::string& name) {
    const std::string subject = sentence("ipvs", "set " + name);
    auto done = wire_.destroy_ipset(name);
    for (int left = kBusyTries; !done && done.error().sys_errno == EBUSY && left > 0; --left) {
      pollfd stop{options_.stop_fd, POLLIN, 0};
      if (::poll(&stop, 1, kBusyPauseMillis) > 0) {
        break;
      }
      done = wire_.destroy_ipset(name);
    }
    if (done) {
      report_.removed.push_back(subject);
    } else if (done.error().sys_errno == EBUSY) {
      report_.left.push_back(sentence(subject, done.error().what));
    } else {
      failed(subject, done.error().what);
    }
  }

  Wire& wire_;
  RemovalOptions options_;
  Report report_;
};

}  // namespace

Found find_kube_proxy(std::optional<Variant::Kind> ours) {
  Found out;
  const auto wire = Wire::open();
  if (!wire) {
    out.unknown.push_back(wire.error().what);
    return out;
  }
  for (const net::Family family : kFamilies) {
    if (const auto tables = (*wire)->nft_tables(family); !tables) {
      out.unknown.push_back(sentence(nft_table_name(family), tables.error().what));
    } else if (tables->contains(kNftTable)) {
      out.nftables = true;
    }
  }
  for (const Variant& variant : kVariants) {
    if (const auto chains = has_chains(**wire, variant, mode_in(variant, ours)); !chains) {
      out.unknown.push_back(sentence(to_string(variant), chains.error().what));
    } else if (*chains) {
      out.iptables = true;
    }
  }
  const auto sets = kube_proxy_sets(**wire);
  if (!sets) {
    out.unknown.push_back(sentence("ipvs: sets", sets.error().what));
  }
  const auto link = has_kube_proxy_link();
  if (!link) {
    out.unknown.push_back(sentence(std::string("ipvs: link ") + kIpvsLink, link.error().what));
  }
  out.ipvs = (link && *link) || (sets && !sets->empty());
  return out;
}

Report remove_kube_proxy(const RemovalOptions& options) {
  const auto wire = Wire::open();
  if (!wire) {
    Report report;
    report.failed.push_back(wire.error().what);
    return report;
  }
  Removal removal(**wire, options);
  removal.nftables();
  for (const Variant& variant : kVariants) {
    removal.iptables(variant);
  }
  removal.ipvs();
  return removal.take();
}

}  // namespace shunt::backend::leftovers
