#include "runner/children.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX, not in <csignal>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <thread>

namespace shunt::conformance {
namespace {

using std::chrono::seconds;

std::vector<ChildEnd> ends_of(const std::vector<Child>& children, std::size_t at_once) {
  std::vector<ChildEnd> ends(children.size());
  CHECK(run_children(children, at_once, [&](std::size_t index, ChildEnd end) {
          ends[index] = std::move(end);
        }) == 0);
  return ends;
}

Child working(std::function<std::string()> work) { return {std::move(work), seconds(60), {}}; }

TEST_CASE("every piece of work is a process of its own and answers for itself") {
  const std::string own = std::to_string(::getpid());
  std::string long_answer(1 << 20, 'x');  // more than a pipe holds
  const auto ends = ends_of(
      {working([] { return std::to_string(::getpid()); }),
       working([&] { return long_answer; }),
       working([]() -> std::string { throw std::runtime_error("no luck"); }),
       working([]() -> std::string { ::_exit(7); }),
       working([] { return std::string(); })},
      2);
  CHECK(ends[0].report.value() != own);
  CHECK(ends[1].report.value() == long_answer);
  CHECK(ends[2].problem == "no luck");
  CHECK(ends[3].problem == "ended with 7 and no answer");
  CHECK(ends[4].report.value().empty());
}

TEST_CASE("what takes too long is killed") {
  const auto ends = ends_of(
      {{[] {
          std::this_thread::sleep_for(seconds(60));
          return std::string("late");
        },
        seconds(1),
        {}}},
      1);
  CHECK(ends[0].problem == "did not end within 1 s");
}

TEST_CASE("what takes longest is started first") {
  std::vector<std::size_t> order;
  const auto nothing = [] { return std::string(); };
  run_children(
      {{nothing, seconds(60), seconds(0)},
       {nothing, seconds(60), seconds(0)},
       {nothing, seconds(60), seconds(9)}},
      1,
      [&](std::size_t index, const ChildEnd&) { order.push_back(index); });
  CHECK(order == std::vector<std::size_t>{2, 0, 1});
}

TEST_CASE("a signal to the parent ends the children and starts no more") {
  const pid_t parent = ::getpid();
  std::vector<Child> children{working([&] {
    ::kill(parent, SIGTERM);
    std::this_thread::sleep_for(seconds(60));
    return std::string();
  })};
  children.push_back(working([] { return std::string("never"); }));
  std::size_t ended = 0;
  const int signal_number =
      run_children(children, 1, [&](std::size_t, const ChildEnd&) { ++ended; });
  CHECK(signal_number == SIGTERM);
  CHECK(ended == 0);
}

}  // namespace
}  // namespace shunt::conformance
