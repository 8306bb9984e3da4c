#include "backend/iptables/variant.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "backend/leftovers/kube_proxy_names.h"
#include "backend/leftovers/save_reader.h"
#include "backend/leftovers/wire.h"

namespace shunt::backend::iptables {
namespace {

using leftovers::IptablesTool;
using leftovers::Variant;

constexpr std::string_view kKubeletChains[] = {"KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"};

bool is_kubelets(std::string_view chain) {
  return std::ranges::find(kKubeletChains, chain) != std::end(kKubeletChains);
}

void look_at(std::string_view save, std::size_t& rules, bool& kubelet) {
  leftovers::for_each_line(save, [&](std::string_view text) {
    const leftovers::SaveLine line = leftovers::read_save_line(text);
    rules += line.kind == leftovers::SaveLine::Kind::Rule ? 1 : 0;
    kubelet = kubelet || (line.kind == leftovers::SaveLine::Kind::Chain && is_kubelets(line.name));
  });
}

// Of the tables that are there.
Result<> look_at(
    const Variant& variant,
    const std::vector<std::string>& tables,
    std::size_t& rules,
    bool& kubelet) {
  if (tables.empty()) {
    return {};
  }
  const auto tool = IptablesTool::find(variant, -1);
  if (!tool) {
    return tl::unexpected(tool.error());
  }
  for (const std::string& table : tables) {
    const auto text = tool->save(table);
    if (!text) {
      return tl::unexpected(text.error());
    }
    look_at(*text, rules, kubelet);
  }
  return {};
}

}  // namespace

Choice choose_variant(const Evidence& evidence) {
  const auto choice = [](VariantKind kind, const char* why) {
    return Choice{
        kind,
        (kind == VariantKind::Nft ? "the nft variant: " : "the legacy variant: ") +
            std::string(why)};
  };
  const auto by = [&](bool nft, const char* why) {
    return choice(nft ? VariantKind::Nft : VariantKind::Legacy, why);
  };
  if (evidence.kubelet_in_nft != evidence.kubelet_in_legacy) {
    return by(evidence.kubelet_in_nft, "the kubelet's chains are there");
  }
  if (evidence.rules_in_nft != evidence.rules_in_legacy) {
    return by(
        evidence.rules_in_nft > evidence.rules_in_legacy, "most rules of this host are there");
  }
  return choice(evidence.plain_program, "nobody has rules, and iptables is of this variant");
}

Result<Evidence> gather_evidence() {
  Evidence out;
  const auto wire = leftovers::Wire::open();
  if (!wire) {
    return tl::unexpected(wire.error());
  }
  const Variant nft{VariantKind::Nft, net::Family::IPv4};
  const Variant legacy{VariantKind::Legacy, net::Family::IPv4};
  const auto with_chains =
      (*wire)->nft_tables_with(nft.family, [](std::string_view table, std::string_view) {
        return table == "nat" || table == "filter" || table == "mangle";
      });
  if (!with_chains) {
    return tl::unexpected(with_chains.error());
  }
  const std::vector<std::string> nft_tables(with_chains->begin(), with_chains->end());
  if (auto done = look_at(nft, nft_tables, out.rules_in_nft, out.kubelet_in_nft); !done) {
    return tl::unexpected(done.error());
  }
  const auto legacy_tables = candidate_tables(**wire, legacy);
  if (!legacy_tables) {
    return tl::unexpected(legacy_tables.error());
  }
  const auto done = look_at(legacy, *legacy_tables, out.rules_in_legacy, out.kubelet_in_legacy);
  // Where the kubelet has spoken, it matters little what cannot be looked into.
  if (!done && !out.kubelet_in_nft) {
    return tl::unexpected(done.error());
  }
  out.plain_program = leftovers::plain_variant(net::Family::IPv4);
  return out;
}

bool are_ours(std::string_view filter_table) {
  bool rules = false;
  bool canary = false;
  leftovers::for_each_line(filter_table, [&](std::string_view text) {
    const leftovers::SaveLine line = leftovers::read_save_line(text);
    if (line.kind == leftovers::SaveLine::Kind::Chain) {
      // Neither the kubelet nor kube-proxy's IPVS mode has this one.
      rules = rules || line.name == "KUBE-EXTERNAL-SERVICES";
      canary = canary || line.name == leftovers::kCanary;
    }
  });
  return rules && !canary;
}

namespace {

Result<bool> has_our_rules(leftovers::Wire& wire, const Variant& variant) {
  const auto tables = candidate_tables(wire, variant);
  if (!tables) {
    return tl::unexpected(tables.error());
  }
  if (std::ranges::find(*tables, "filter") == tables->end()) {
    return false;
  }
  const auto tool = IptablesTool::find(variant, -1);
  if (!tool) {
    const bool none = variant.kind == VariantKind::Legacy && tool.error().code == Errc::NotFound;
    return none ? Result<bool>(false) : tl::unexpected(tool.error());
  }
  return tool->save("filter").map([](const std::string& text) { return are_ours(text); });
}

}  // namespace

OurRules find_our_rules() {
  OurRules out;
  const auto wire = leftovers::Wire::open();
  if (!wire) {
    out.unknown.push_back(wire.error().what);
    return out;
  }
  for (const Variant& variant : leftovers::kVariants) {
    const auto found = has_our_rules(**wire, variant);
    if (!found) {
      out.unknown.push_back(to_string(variant) + ": " + found.error().what);
    } else if (*found) {
      out.variants.push_back(variant);
    }
  }
  return out;
}

}  // namespace shunt::backend::iptables
