// The floor of the benchmark: a bare program that does what any node agent has to do and nothing
// else. One line of JSON on stdout.
//
//   bench_floor lists --server 127.0.0.1:6443 --pki DIR [--accept TYPES]
//       GETs Services and EndpointSlices over TLS and throws the bytes away
//   bench_floor write --services N --endpoints K [--per-transaction N] [--dump] [--singles N]
//       writes the elements of N Services into the program's sets, in a network namespace of its
//       own that goes with the process

#include <sched.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "bench/floor/list_floor.h"
#include "bench/floor/write_floor.h"
#include "net/socket_address.h"

namespace {

using namespace shunt;
using nlohmann::json;

json run_lists(const std::string& server, const std::string& pki, const std::string& accept) {
  const auto address = net::parse_socket_address(server);
  if (!address) {
    throw std::runtime_error("--server takes ADDRESS:PORT");
  }
  const bench::ListFloor floor =
      bench::read_lists(net::to_string(address->ip), net::number(address->port), pki, accept);
  return {{"seconds", floor.seconds}, {"bytes", floor.bytes}};
}

json run_write(const bench::WriteSize& size) {
  if (::unshare(CLONE_NEWNET) != 0) {
    throw std::runtime_error("cannot make a network namespace: needs root");
  }
  const bench::WriteFloor floor = bench::write_elements(size);
  return {
      {"seconds", floor.seconds},
      {"elements", floor.elements},
      {"dumpSeconds", floor.dump_seconds},
      {"singleMs", floor.single_ms}};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app{"What reading the lists and writing the elements costs at least"};
    app.require_subcommand(1);
    std::string server = "127.0.0.1:6443";
    std::string pki;
    std::string accept = "application/json";
    CLI::App* lists = app.add_subcommand("lists", "read the lists");
    lists->add_option("--server", server, "ADDRESS:PORT");
    lists->add_option("--pki", pki, "the test API server's --pki")->required();
    lists->add_option("--accept", accept, "media types to ask for");
    bench::WriteSize size;
    CLI::App* write = app.add_subcommand("write", "write the elements");
    write->add_option("--services", size.services)->required();
    write->add_option("--endpoints", size.endpoints, "of each Service")->required();
    write->add_option("--per-transaction", size.elements_a_transaction, "elements");
    write->add_option("--singles", size.singles, "transactions of one element afterwards");
    write->add_flag("--dump,!--no-dump", size.dump, "read it all back");
    CLI11_PARSE(app, argc, argv);
    const json out = lists->parsed() ? run_lists(server, pki, accept) : run_write(size);
    std::printf("%s\n", out.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_floor: %s\n", error.what());
    return 1;
  }
}
