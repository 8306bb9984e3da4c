// conformance DIR...: runs the cases of the bank (../RUNNER.md). Exits with 0 when nothing failed,
// 1 when something did, 2 on a wrong command line.
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <thread>

#include "conntrack/conntrack_kind.h"
#include "netns/netns.h"
#include "packet/packet_kind.h"
#include "runner/command_line.h"
#include "runner/kinds.h"
#include "runner/runner.h"
#include "virtual_servers/virtual_servers_kind.h"

namespace {

using namespace shunt::conformance;

using virtual_servers::VirtualServersKind;

Runners runners_for(const packet::PacketFlowKind& packet_flow, const VirtualServersKind& servers) {
  Runners runners;
  runners["topology"] = run_topology;
  runners["endpoint-merge"] = run_endpoint_merge;
  runners["service-model"] = run_service_model;
  runners["conntrack"] = run_conntrack;
  runners["health"] = run_health;
  runners["node-config"] = run_node_config;
  runners["packet-flow"] = packet_flow.runner();
  runners["virtual-servers"] = servers.runner();
  return runners;
}

// Cases mostly wait, for packets and for silence. Measured on two processors, the bank with 2, 4, 8
// and 12 at once: 70, 49, 37 and 30 s with the same results; more gains little and leaves a flow
// less of the time that it may take (packet/flow_runner.cpp).
std::size_t cases_at_once() {
  return std::size_t{4} * std::max(std::thread::hardware_concurrency(), 1U);
}

Totals run_bank(const CommandLine& line) {
  const packet::PacketFlowKind packet_flow(line.packet_flow);
  const VirtualServersKind servers(line.packet_flow);
  const Totals totals =
      run(line.roots,
          runners_for(packet_flow, servers),
          line.options,
          std::cout,
          {{"packet-flow", packet_flow.preparation()}, {"virtual-servers", servers.preparation()}});
  if (totals.interrupted_by != 0) {
    packet_flow.remove_logs();
    servers.remove_logs();
  }
  return totals;
}

int run_all(int argc, char** argv) {
  CommandLine line;
  line.options.at_once = cases_at_once();
  line.packet_flow = packet::default_packet_flow_options();
  if (const auto problem = parse_command_line({argv + 1, argv + argc}, line)) {
    std::cerr << "conformance: " << *problem << "\n" << kUsage;
    return 2;
  }
  if (line.help) {
    std::cout << kUsage;
    return 0;
  }
  const Totals totals = run_bank(line);
  shunt::lab::reap_namespaces();  // of a case that died
  if (totals.interrupted_by != 0) {
    std::cout.flush();
    ::raise(totals.interrupted_by);  // so that whoever started us knows
  }
  return totals.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "conformance: %s\n", e.what());
    return 1;
  }
}
