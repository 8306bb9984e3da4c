#include "backend/iptables/variant.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::backend::iptables {
namespace {

TEST_CASE("the kubelet's word counts more than numbers, and numbers more than a name") {
  Evidence evidence;
  evidence.plain_program = VariantKind::Legacy;
  CHECK(choose_variant(evidence).kind == VariantKind::Legacy);
  evidence.rules_in_nft = 1;
  CHECK(choose_variant(evidence).kind == VariantKind::Nft);
  evidence.rules_in_legacy = 2;
  CHECK(choose_variant(evidence).kind == VariantKind::Legacy);
  evidence.kubelet_in_nft = true;
  CHECK(choose_variant(evidence).kind == VariantKind::Nft);
  // A kubelet that changed its variant left chains of the other: then numbers count.
  evidence.kubelet_in_legacy = true;
  CHECK(choose_variant(evidence).kind == VariantKind::Legacy);
}

TEST_CASE("chains with kube-proxy's names are ours where its canary is not") {
  const struct {
    const char* what;
    const char* filter_table;
    bool ours;
  } cases[] = {
      {"nobody's", "", false},
      {"ours", ":KUBE-EXTERNAL-SERVICES - [0:0]\n:KUBE-SERVICES - [0:0]\n", true},
      {"kube-proxy's", ":KUBE-EXTERNAL-SERVICES - [0:0]\n:KUBE-PROXY-CANARY - [0:0]\n", false},
      {"kube-proxy's, in IPVS mode",
       ":KUBE-PROXY-FIREWALL - [0:0]\n:KUBE-FORWARD - [0:0]\n",
       false},
      {"the kubelet's", ":KUBE-FIREWALL - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\n", false},
      {"only a rule that names it", "-A INPUT -j KUBE-EXTERNAL-SERVICES\n", false},
  };
  for (const auto& one : cases) {
    INFO(one.what);
    CHECK(are_ours(std::string("*filter\n") + one.filter_table + "COMMIT\n") == one.ours);
  }
}

}  // namespace
}  // namespace shunt::backend::iptables
