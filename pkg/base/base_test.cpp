#include <poll.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/backoff.h"
#include "base/directory_watch.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/subprocess.h"

namespace shunt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<Millis::rep> delays(Backoff& backoff, Clock::time_point now, int count) {
  std::vector<Millis::rep> out;
  out.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    out.push_back(backoff.next(now).count());
  }
  return out;
}

TEST_CASE("backoff doubles from 0.8 s and stays at 30 s") {
  Backoff backoff({}, [] { return 0.0; });
  CHECK(
      delays(backoff, Clock::time_point{}, 8) ==
      std::vector<Millis::rep>{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000});
}

TEST_CASE("every backoff wait is drawn between the delay and twice the delay") {
  Backoff backoff({}, [] { return 0.5; });
  CHECK(delays(backoff, Clock::time_point{}, 3) == std::vector<Millis::rep>{1200, 2400, 4800});
}

TEST_CASE("backoff starts again two minutes after it last started") {
  Backoff backoff({}, [] { return 0.0; });
  const Clock::time_point start{};
  CHECK(delays(backoff, start, 2) == std::vector<Millis::rep>{800, 1600});
  CHECK(delays(backoff, start + seconds(120), 1) == std::vector<Millis::rep>{3200});
  CHECK(delays(backoff, start + seconds(121), 2) == std::vector<Millis::rep>{800, 1600});
  CHECK(delays(backoff, start + seconds(200), 1) == std::vector<Millis::rep>{3200});
  backoff.reset();
  CHECK(delays(backoff, start + seconds(200), 1) == std::vector<Millis::rep>{800});
}

bool rings(const WakeFd& wake) {
  pollfd fd{wake.fd(), POLLIN, 0};
  return ::poll(&fd, 1, 0) == 1;
}

using Slots = std::map<std::string, Mailbox<int>::Slot>;

TEST_CASE("a mailbox keeps the last value of each key") {
  WakeFd wake;
  Mailbox<int> mailbox(wake);
  CHECK(mailbox.drain().empty());
  CHECK_FALSE(rings(wake));

  mailbox.upsert("a", 1);
  mailbox.upsert("b", 2);
  mailbox.upsert("a", 3);
  mailbox.remove("b");

  CHECK(rings(wake));
  wake.clear();
  CHECK_FALSE(rings(wake));
  const auto mail = mailbox.drain();
  CHECK_FALSE(mail.listed);
  CHECK(mail.changes == Slots{{"a", {3, 0}}, {"b", {std::nullopt, 0}}});
  CHECK(mailbox.drain().empty());
}

TEST_CASE("objects of a list come one by one, numbered; its end says which number is complete") {
  WakeFd wake;
  Mailbox<int> mailbox(wake);
  mailbox.upsert("old", 1);
  mailbox.begin_list();
  mailbox.upsert("a", 1);
  mailbox.upsert("b", 2);
  auto mail = mailbox.drain();
  CHECK_FALSE(mail.listed);
  CHECK(mail.changes == Slots{{"a", {1, 1}}, {"b", {2, 1}}, {"old", {1, 0}}});

  mailbox.begin_list();  // the first was left unfinished
  mailbox.upsert("a", 3);
  mailbox.end_list();
  mailbox.remove("a");
  mail = mailbox.drain();
  CHECK(mail.listed == 2U);
  CHECK(mail.changes == Slots{{"a", {std::nullopt, 2}}});
}

TEST_CASE("an empty list is mail too") {
  WakeFd wake;
  Mailbox<int> mailbox(wake);
  mailbox.begin_list();
  CHECK(mailbox.drain().empty());
  mailbox.end_list();
  CHECK(rings(wake));
  CHECK_FALSE(mailbox.drain().empty());
}

TEST_CASE("a mailbox rings once for all that waits in it") {
  WakeFd wake;
  Mailbox<int> mailbox(wake);
  mailbox.upsert("a", 1);
  wake.clear();
  mailbox.upsert("b", 1);
  CHECK_FALSE(rings(wake));
  (void)mailbox.drain();
  mailbox.upsert("c", 1);
  CHECK(rings(wake));
}

TEST_CASE("a mailbox loses nothing between threads") {
  WakeFd wake;
  Mailbox<int> mailbox(wake);
  std::jthread writer([&] {
    for (int i = 1; i <= 2000; ++i) {
      mailbox.upsert("key" + std::to_string(i % 7), i);
    }
  });
  std::map<std::string, std::optional<int>> seen;
  while (seen["key5"] != 2000) {  // 2000 % 7 == 5
    for (auto& [key, slot] : mailbox.drain().changes) {
      CHECK(slot.value > seen[key]);
      seen[key] = slot.value;
    }
  }
  CHECK(seen.size() == 7);
}

TEST_CASE("what is preloaded is older than every list, and comes too late after any word") {
  WakeFd wake;
  Mailbox<int> mailbox(wake);
  mailbox.begin_list();
  REQUIRE(mailbox.preload({{"a", 1}, {"b", 2}}));
  mailbox.upsert("a", 3);
  const auto first = mailbox.drain();
  CHECK(first.changes == Slots{{"a", {3, 1}}, {"b", {2, 0}}});
  CHECK(first.listed == 0U);
  mailbox.end_list();
  CHECK(mailbox.drain().listed == 1U);

  Mailbox<int> heard(wake);
  heard.begin_list();
  heard.upsert("a", 1);
  (void)heard.drain();
  CHECK_FALSE(heard.preload({{"a", 0}}));
  CHECK(heard.drain().empty());
}

TEST_CASE("log values are quoted when logfmt needs it, and cannot forge a line") {
  struct Case {
    std::string_view value;
    std::string_view text;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"plain-1.2/x:y", "plain-1.2/x:y"},
           {"", "\"\""},
           {"two words", "\"two words\""},
           {"a=b", "\"a=b\""},
           {"say \"hi\" \\", "\"say \\\"hi\\\" \\\\\""},
           {"x\nlevel=error", "\"x\\nlevel=error\""},
           {std::string_view("\x1b[2J\r\0", 6), "\"\\x1b[2J\\x0d\\x00\""},
           {"\x7f", "\"\\x7f\""}}) {
    CHECK(log::logfmt_value(c.value) == c.text);
  }
  CHECK(log::kv("n", 0.25).value == "0.25");
  CHECK(log::kv("n", true).value == "true");
  CHECK(log::kv("n", -7).value == "-7");
}

Command shell(std::string script) { return {.argv = {"/bin/sh", "-c", std::move(script)}}; }

TEST_CASE("a command gets its input and environment, and gives output and exit code") {
  Command command = shell("cat; echo \"$GREETING $HOME\"; echo oops >&2; exit 3");
  command.input = "line\n";
  command.env = {{"GREETING", "hi"}, {"HOME", "/nowhere"}};
  const auto got = run(command);
  REQUIRE(got);
  CHECK(got->exit_code == 3);
  CHECK(got->out == "line\nhi /nowhere\n");
  CHECK(got->diagnostics == "oops\n");
}

TEST_CASE("a command that never reads its input, or reads much, does no harm") {
  Command command = shell("exit 0");
  command.input = std::string(1 << 20, 'x');
  CHECK(run(command)->exit_code == 0);
  command = shell("wc -c");
  command.input = std::string(1 << 20, 'x');
  CHECK(run(command)->out == "1048576\n");
}

TEST_CASE("a command that cannot be started says why") {
  CHECK(run({.argv = {"/nonexistent/tool"}}).error().code == Errc::NotFound);
  CHECK(run({.argv = {"kube-shunt-no-such-tool"}}).error().code == Errc::NotFound);
  CHECK(run({.argv = {"/etc/passwd"}}).error().code == Errc::Denied);
  CHECK(run({}).error().code == Errc::Invalid);
}

TEST_CASE("output is bounded") {
  Command command = shell("yes secret");
  command.max_output = 1000;
  const auto got = run(command);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == Errc::Invalid);
  CHECK(got.error().what.find("secret") == std::string::npos);

  command = shell("yes | head -c 100000 >&2; echo done");
  command.max_diagnostics = 10;
  const auto noisy = run(command);
  REQUIRE(noisy);
  CHECK(noisy->diagnostics.size() == 10);
  CHECK(noisy->out == "done\n");

  command = shell("printf 12345");
  command.max_output = 5;
  CHECK(run(command)->out == "12345");
}

TEST_CASE("a deadline ends the command and what it started") {
  Command command = shell("sleep 30 & sleep 30");
  command.timeout = milliseconds(50);
  const auto before = Clock::now();
  const auto got = run(command);
  REQUIRE_FALSE(got);
  CHECK(got.error().sys_errno == ETIMEDOUT);
  CHECK(Clock::now() - before < seconds(5));
}

TEST_CASE("a process left behind does not hold the caller") {
  const auto before = Clock::now();
  const auto got = run(shell("sleep 3 & echo started"));
  REQUIRE(got);
  CHECK(got->out == "started\n");
  CHECK(Clock::now() - before < seconds(2));
}

TEST_CASE("a ringing stop descriptor ends the command") {
  WakeFd stop;
  Command command = shell("sleep 30");
  command.stop_fd = stop.fd();
  std::jthread ringer([&] { stop.ring(); });
  const auto got = run(command);
  REQUIRE_FALSE(got);
  CHECK(got.error().sys_errno == ECANCELED);
}

TEST_CASE("a directory watch hears of files that are renamed into place, and only once") {
  char path[] = "/tmp/shunt-watch-XXXXXX";
  REQUIRE(::mkdtemp(path) != nullptr);
  const std::filesystem::path directory(path);
  auto watch = DirectoryWatch::open(directory);
  REQUIRE(watch);
  CHECK_FALSE(watch->take_changes());

  std::filesystem::create_directory_symlink("data-1", directory / "..data_tmp");
  std::filesystem::rename(directory / "..data_tmp", directory / "..data");
  pollfd readable{watch->fd(), POLLIN, 0};
  CHECK(::poll(&readable, 1, 0) == 1);
  CHECK(watch->take_changes());
  CHECK_FALSE(watch->take_changes());

  std::filesystem::remove_all(directory);
  CHECK(watch->take_changes());
  const auto gone = DirectoryWatch::open(directory);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().what.find(path) == 0);
}

TEST_CASE("a signal shows in the exit code") { CHECK(run(shell("kill -9 $$"))->exit_code == 137); }

}  // namespace
}  // namespace shunt
