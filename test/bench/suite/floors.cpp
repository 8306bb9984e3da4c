#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "bench/suite/measure.h"

namespace shunt::bench {
namespace {

using nlohmann::json;

// What the daemon asked for when it read the Services, in the form that lists have: the floor reads
// the same bytes.
std::string accept_of_daemon(Stage& stage) {
  const json requests = json::parse(stage.http().request("GET", "/_test/requests").body);
  for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
    std::string accept = request->value("accept", "");
    if (request->value("userAgent", "").starts_with("kube-shunt") && !accept.empty() &&
        request->value("target", "").starts_with("/api/v1/services")) {
      constexpr std::string_view kOfWatches = ";stream=watch";
      const std::size_t at = accept.find(kOfWatches);
      return at == std::string::npos ? accept : accept.erase(at, kOfWatches.size());
    }
  }
  throw std::runtime_error("the daemon has not asked for the Services yet");
}

json run_floor(const Stage& stage, std::vector<std::string> arguments) {
  std::vector<std::string> argv{
      "ip", "netns", "exec", stage.node().name(), program_beside_us("bench_floor")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return json::parse(lab::run_program(argv));
}

json run_write(const Stage& stage, const std::string& more, std::size_t singles) {
  return run_floor(
      stage,
      {"write",
       "--services",
       std::to_string(stage.load().services),
       "--endpoints",
       std::to_string(stage.load().endpoints),
       "--singles",
       std::to_string(singles),
       more});
}

}  // namespace

Floors measure_floors(Stage& stage, const Options& options, Then then) {
  Floors floors;
  const std::string accept = accept_of_daemon(stage);
  const int runs = options.quick || stage.load().services >= 100'000 ? 1 : 3;
  for (int run = 0; run < runs; ++run) {
    const json lists = run_floor(
        stage, {"lists", "--server", Stage::kServer, "--pki", stage.pki(), "--accept", accept});
    floors.lists.add(lists.at("seconds"));
    const json writes = run_write(stage, then == Then::Dump ? "--dump" : "--no-dump", 0);
    floors.writes.add(writes.at("seconds"));
    floors.dumps.add(writes.at("dumpSeconds"));
  }
  return floors;
}

Samples measure_single_writes(Stage& stage, std::size_t count) {
  return Samples(run_write(stage, "--no-dump", count).at("singleMs").get<std::vector<double>>());
}

}  // namespace shunt::bench
