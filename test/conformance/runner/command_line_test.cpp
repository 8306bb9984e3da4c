#include "runner/command_line.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::conformance {
namespace {

CommandLine parsed(const std::vector<std::string>& arguments) {
  CommandLine line;
  const auto problem = parse_command_line(arguments, line);
  INFO(problem.value_or(""));
  CHECK_FALSE(problem);
  return line;
}

std::string problem_of(const std::vector<std::string>& arguments) {
  CommandLine line;
  return parse_command_line(arguments, line).value_or("");
}

TEST_CASE("the mode decides on the profile") {
  CHECK(parsed({"dir"}).options.profile == "nft");
  CHECK(parsed({"dir", "--mode", "nftables"}).options.profile == "nft");
  CHECK(parsed({"dir", "--mode", "ipvs"}).options.profile == "nft");
  CHECK(parsed({"dir", "--mode", "iptables"}).options.profile == "ipt");
  CHECK(parsed({"--mode=iptables", "dir"}).options.mode == "iptables");
  CHECK(problem_of({"dir", "--mode", "userspace"}) == "--mode: \"userspace\" will not do");
}

TEST_CASE("options may stand anywhere, and many directories be named") {
  const CommandLine line = parsed(
      {"-j4",
       "one",
       "--filter",
       "pf-0",
       "two",
       "--needs=sctp",
       "--kinds",
       "topology,packet-flow",
       "--no-status-socket",
       "--settle-ms",
       "250",
       "--patience",
       "3",
       "--capabilities",
       "node-port"});
  CHECK(line.roots == std::vector<std::filesystem::path>{"one", "two"});
  CHECK(line.options.at_once == 4);
  CHECK(line.options.filter == "pf-0");
  CHECK(line.options.needs == "sctp");
  CHECK(line.options.kinds.size() == 2);
  CHECK_FALSE(line.packet_flow.has_status_socket);
  CHECK(line.packet_flow.settle == std::chrono::milliseconds(250));
  CHECK(line.packet_flow.patience == 3);
  CHECK(line.packet_flow.capabilities == packet::Capabilities{"node-port"});
}

TEST_CASE("a command line that makes no sense is refused with the reason") {
  CHECK(problem_of({}) == "no directory");
  CHECK(problem_of({"dir", "--filter"}) == "--filter wants a value");
  CHECK(problem_of({"dir", "--profile", "nft"}) == "no option --profile");
  CHECK(problem_of({"dir", "-j", "0"}) == "-j: \"0\" will not do");
  CHECK(problem_of({"dir", "-j", "4x"}) == "-j: \"4x\" will not do");
  CHECK(problem_of({"dir", "--settle-ms=-1"}) == "--settle-ms: \"-1\" will not do");
  CHECK(problem_of({"--help"}).empty());
}

}  // namespace
}  // namespace shunt::conformance
