#include "backend/iptables/probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/iptables/names.h"

namespace shunt::backend::iptables {
namespace {

bool is_rule_for(std::string_view rule, const desired::FrontendKey& key) {
  const std::string protocol = fmt::format("-p {} ", word(key.protocol));
  const std::string port = fmt::format("--dport {} ", net::number(key.port));
  const std::string to = desired::is_node_port(key)
                             ? ""
                             : fmt::format("-d {}/{} ", net::to_string(key.ip), key.ip.size() * 8);
  return rule.find(protocol) != std::string_view::npos &&
         rule.find(port) != std::string_view::npos && rule.find(to) != std::string_view::npos;
}

}  // namespace

Result<bool> Probe::program_is_whole() {
  return read_tables(*tables_).map([&](const Listing& listing) {
    const auto is_there = [&](const ChainName& chain) { return listing.chains.contains(chain); };
    const auto fixed = fixed_chains(settings_);
    return std::ranges::includes(listing.jumps, wanted_jumps(settings_)) &&
           (listing.guard || !settings_.localhost_node_ports) &&
           std::ranges::all_of(shared_chains(), is_there) &&
           std::ranges::all_of(fixed, [&](const auto& chain) {
             const auto found = listing.chains.find(chain.first);
             return found != listing.chains.end() && found->second.size() == chain.second.size();
           });
  });
}

Result<bool> Probe::has(const desired::FrontendKey& frontend) {
  return read_tables(*tables_).map([&](const Listing& listing) {
    return std::ranges::any_of(shared_chains(), [&](const ChainName& chain) {
      const auto found = listing.chains.find(chain);
      return found != listing.chains.end() &&
             std::ranges::any_of(found->second, [&](const std::string& rule) {
               return is_rule_for(rule, frontend);
             });
    });
  });
}

Result<bool> Probe::has_any() {
  return read_tables(*tables_).map([](const Listing& listing) {
    return std::ranges::any_of(shared_chains(), [&](const ChainName& chain) {
      const auto found = listing.chains.find(chain);
      return found != listing.chains.end() &&
             std::ranges::any_of(found->second, [](const std::string& rule) {
               return rule.find(" --dport ") != std::string::npos;
             });
    });
  });
}

}  // namespace shunt::backend::iptables
