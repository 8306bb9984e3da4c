// Which of its two variants a host uses: iptables over nf_tables, or the legacy one with tables of
// its own. Rules of both are in force at once, so that ours must go where those of the kubelet and
// of the network plugin are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backend/leftovers/iptables_tool.h"
#include "base/result.h"

namespace shunt::backend::iptables {

using VariantKind = leftovers::Variant::Kind;

// What tells them apart, of IPv4.
struct Evidence {
  bool kubelet_in_nft = false;  // KUBE-IPTABLES-HINT or KUBE-KUBELET-CANARY in table mangle
  bool kubelet_in_legacy = false;
  std::size_t rules_in_nft = 0;
  std::size_t rules_in_legacy = 0;
  VariantKind plain_program = VariantKind::Nft;  // what the program of the name "iptables" is
};

struct Choice {
  VariantKind kind = VariantKind::Nft;
  std::string why;  // for the log
};

// The kubelet's word counts most, then whose rules are more, then the name. Pure.
Choice choose_variant(const Evidence& evidence);

// Looks at the namespace of the thread. Changes nothing: no table is made by looking.
Result<Evidence> gather_evidence();

// Whether rules of the iptables mode that this text of table filter holds are kube-shunt's. The
// chains have kube-proxy's names; its canary, which kube-proxy makes before any of them
// (spec/iptables.md, 8) and a take-over removes, is never made here. Pure.
bool are_ours(std::string_view filter_table);

struct OurRules {
  std::vector<leftovers::Variant> variants;  // that have them
  std::vector<std::string> unknown;          // what could not be looked at, and why
};
// For --cleanup, which may not know the mode that wrote them. Changes nothing: no table is made by
// looking. Where the legacy variant is not installed, it has nothing of ours.
OurRules find_our_rules();

}  // namespace shunt::backend::iptables
