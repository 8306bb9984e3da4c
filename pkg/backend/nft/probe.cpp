#include "backend/nft/probe.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "backend/nft/keys.h"
#include "backend/nft/table_check.h"

namespace shunt::backend::nft {

Result<std::unique_ptr<Probe>> Probe::open(net::Family family, const ProgramSettings& settings) {
  auto transport = KernelTransport::open();
  if (!transport) {
    return tl::unexpected(transport.error());
  }
  return std::unique_ptr<Probe>(new Probe(make_program(family, settings), std::move(*transport)));
}

Probe::Probe(Program program, std::unique_ptr<KernelTransport> transport)
    : program_(std::move(program)), transport_(std::move(transport)) {}

Result<bool> Probe::program_is_whole() {
  return transport_->read_table(program_.family).map([&](const TableState& state) {
    return state.exists && is_whole(state, program_);
  });
}

Result<bool> Probe::has(const desired::FrontendKey& frontend) {
  const bool node_port = desired::is_node_port(frontend);
  bool found = false;
  auto done = transport_->find_elements(
      program_.family,
      set_in(program_, node_port ? SetId::ServiceNodePorts : SetId::ServiceIps),
      each_alone({encode(frontend)}),
      [&](Element&&) { found = true; });
  return done.map([&] { return found; });
}

Result<bool> Probe::has_any() {
  const auto state = transport_->read_table(program_.family);
  if (!state || !state->exists) {
    return state.map([](const TableState&) { return false; });
  }
  bool found = false;
  for (const SetId id : {SetId::ServiceIps, SetId::ServiceNodePorts}) {
    auto done = transport_->read_elements(
        program_.family, set_in(program_, id), [&](Element&&) { found = true; });
    if (!done) {
      return tl::unexpected(done.error());
    }
  }
  return found;
}

Result<std::vector<Probe::Connections>> Probe::new_connections() {
  std::map<std::pair<std::string, net::Protocol>, std::uint64_t> sums;
  for (const SetId id : {SetId::ServiceIps, SetId::ServiceNodePorts}) {
    const Set& set = set_in(program_, id);
    auto done = transport_->read_counters(
        program_.family, set, [&](Element&& element, std::uint64_t packets) {
          if (const auto key = decode_frontend(program_.family, set.shape, element.key)) {
            sums[{std::move(element.text), key->protocol}] += packets;
          }
        });
    if (!done) {
      return tl::unexpected(done.error());
    }
  }
  std::vector<Connections> out;
  out.reserve(sums.size());
  for (const auto& [what, count] : sums) {
    out.push_back({what.first, what.second, count});
  }
  return out;
}

}  // namespace shunt::backend::nft
