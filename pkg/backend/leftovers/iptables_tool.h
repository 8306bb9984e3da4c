// iptables-save and iptables-restore, of both variants and both families, as far as this machine
// has them. Looking makes nothing: a table that is not there is not asked for, since iptables would
// load its module and create it.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/leftovers/iptables_plan.h"
#include "backend/leftovers/wire.h"
#include "base/result.h"
#include "net/ip_address.h"

namespace shunt::backend::leftovers {

struct Variant {
  enum class Kind : std::uint8_t { Nft, Legacy };
  Kind kind = Kind::Nft;
  net::Family family = net::Family::IPv4;
};

// "iptables-nft", "ip6tables-legacy"
std::string to_string(const Variant& variant);

inline constexpr Variant kVariants[] = {
    {Variant::Kind::Nft, net::Family::IPv4},
    {Variant::Kind::Nft, net::Family::IPv6},
    {Variant::Kind::Legacy, net::Family::IPv4},
    {Variant::Kind::Legacy, net::Family::IPv6}};

// Of the tables kube-proxy uses, those of this variant in which it may have something. For Nft
// those with a chain of its; for Legacy all that exist, since their chains cannot be seen from
// here.
Result<std::vector<std::string>> candidate_tables(
    Wire& wire, const Variant& variant, IptablesMode mode = IptablesMode::KubeProxys);

// Of the program without a variant in its name. Nft where there is none.
Variant::Kind plain_variant(net::Family family);

struct IptablesVersion {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  auto operator<=>(const IptablesVersion&) const = default;
};
// "iptables v1.8.9 (nf_tables)"
std::optional<IptablesVersion> parse_iptables_version(std::string_view said);

class IptablesTool {
 public:
  // Errc::NotFound when its programs are not installed.
  static Result<IptablesTool> find(const Variant& variant, int stop_fd);

  // The text of one table.
  Result<std::string> save(std::string_view table) const;
  Result<IptablesVersion> version() const;
  // Chains that the text does not name stay. All of a table, or nothing of it. Errc::Again:
  // nobody's fault (the lock, memory); Errc::Invalid: iptables or the kernel refuse the text.
  Result<> restore(const std::string& text) const;

 private:
  std::string save_;  // paths
  std::string restore_;
  int stop_fd_ = -1;
};

}  // namespace shunt::backend::leftovers
