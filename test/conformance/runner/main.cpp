// conformance DIR... [--filter TEXT] [--list] [--profile nft|ipt] [--kinds A,B...]
//             [--agent PROGRAM] [--api-server PROGRAM] [--capabilities A,B...]
//
// Runs every case file at or below the given paths. Exits with 0 when nothing failed, 1 when
// something did, 2 on a wrong command line. The last three are for the packet-flow kind: the
// programs to run (those beside this one by default) and what the agent can do
// (packet/capabilities.h).
#include <cstdio>
#include <exception>
#include <iostream>
#include <set>
#include <sstream>
#include <string_view>

#include "packet/packet_flow.h"
#include "runner/kinds.h"
#include "runner/runner.h"

namespace {

using namespace shunt::conformance;

constexpr std::string_view kUsage =
    "usage: conformance DIR... [--filter TEXT] [--list] [--profile nft|ipt] [--kinds A,B...]\n"
    "                   [--agent PROGRAM] [--api-server PROGRAM] [--capabilities A,B...]\n";

using Words = std::set<std::string, std::less<>>;

struct CommandLine {
  std::vector<std::filesystem::path> roots;
  RunOptions options;
  packet::PacketFlowOptions packet_flow = packet::default_packet_flow_options();
  Words kinds;  // none: all
};

Words split(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    words.insert(word);
  }
  return words;
}

Runners runners_for(const CommandLine& line) {
  Runners runners;
  runners["topology"] = run_topology;
  runners["endpoint-merge"] = run_endpoint_merge;
  runners["service-model"] = run_service_model;
  runners["packet-flow"] = packet::packet_flow_runner(line.packet_flow);
  std::erase_if(runners, [&](const auto& runner) {
    return !line.kinds.empty() && !line.kinds.contains(runner.first);
  });
  return runners;
}

// False when the command line makes no sense.
bool parse(const std::vector<std::string>& arguments, CommandLine& line) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (argument == "--list") {
      line.options.list = true;
    } else if (argument == "--filter" && has_value) {
      line.options.filter = arguments[++i];
    } else if (argument == "--profile" && has_value) {
      line.options.profile = arguments[++i];
    } else if (argument == "--kinds" && has_value) {
      line.kinds = split(arguments[++i]);
    } else if (argument == "--agent" && has_value) {
      line.packet_flow.agent = arguments[++i];
    } else if (argument == "--api-server" && has_value) {
      line.packet_flow.api_server = arguments[++i];
    } else if (argument == "--capabilities" && has_value) {
      line.packet_flow.capabilities = split(arguments[++i]);
    } else if (argument.starts_with("-")) {
      return false;
    } else {
      line.roots.emplace_back(argument);
    }
  }
  const bool known_profile = line.options.profile == "nft" || line.options.profile == "ipt";
  return known_profile && !line.roots.empty();
}

int run_all(int argc, char** argv) {
  CommandLine line;
  if (!parse({argv + 1, argv + argc}, line)) {
    std::cerr << kUsage;
    return 2;
  }
  return run(line.roots, runners_for(line), line.options, std::cout).ok() ? 0 : 1;
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
