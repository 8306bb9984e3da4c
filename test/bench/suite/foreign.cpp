// Others write to nf_tables as well, and all writers of a network namespace queue at one lock. How
// long does somebody wait who adds and deletes a table, again and again, while we write everything?

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "bench/suite/measure.h"
#include "netlink/batch.h"
#include "netlink/socket.h"

namespace shunt::bench {
namespace {

using std::chrono::milliseconds;

// Calls `write` again and again on a thread in that namespace, and keeps how long each call took.
class Loop {
 public:
  Loop(const lab::Netns& where, std::function<void(bool add)> write)
      : thread_([this, &where, write = std::move(write)] {
          where.enter();
          for (bool add = true; !stop_; add = !add) {
            const Nanoseconds begin = now_ns();
            write(add);
            waits_.add(milliseconds_between(begin, now_ns()));
            std::this_thread::sleep_for(milliseconds(1));
          }
        }) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    if (thread_.joinable()) {
      (void)finish();
    }
  }
  Samples finish() {
    stop_ = true;
    thread_.join();
    return waits_;
  }

 private:
  std::atomic<bool> stop_ = false;
  Samples waits_;
  std::thread thread_;
};

// Without the start of a process and what it reads first.
void write_table(netlink::Socket& socket, bool add) {
  netlink::Batch batch(NFNL_SUBSYS_NFTABLES);
  batch.begin(
      add ? NFT_MSG_NEWTABLE : NFT_MSG_DELTABLE,
      static_cast<std::uint16_t>(add ? NLM_F_CREATE : 0),
      AF_INET);
  batch.put_string(NFTA_TABLE_NAME, "bench_foreign_raw");
  batch.end();
  (void)socket.commit(batch);  // a table that the daemon's start found gone is no failure here
}

void run_nft(const lab::Netns& where, bool add) {
  lab::ProcessSpec spec;
  spec.argv = {"nft", add ? "add table ip bench_foreign" : "delete table ip bench_foreign"};
  (void)lab::Process(where, spec).wait(std::chrono::seconds(60));
}

}  // namespace

void measure_foreign_writer(Stage& stage, const Options& /*options*/, Report& report) {
  const std::string size = stage.load().text();
  stage.stop_daemon();
  stage.remove_rules();
  auto socket = stage.node().run([] {
    auto opened = netlink::Socket::open();
    return opened ? std::move(*opened) : nullptr;
  });
  if (socket == nullptr) {
    throw std::runtime_error("no netlink socket");
  }
  Row rows[] = {
      {"`nft add table` of others beside the first sync", size, "ms"},
      {"  the same without the process", size, "ms"}};
  // One after the other: nft starts over when anybody wrote between what it reads and what it
  // sends, so the bare writer would hold up nft, and we want to know how long the daemon does.
  const std::function<void(bool)> writers[] = {
      [&](bool add) { run_nft(stage.node(), add); }, [&](bool add) { write_table(*socket, add); }};
  for (std::size_t i = 0; i < std::size(writers); ++i) {
    {
      Loop idle(stage.node(), writers[i]);
      std::this_thread::sleep_for(milliseconds(2000));
      rows[i].against("idle", idle.finish());
    }
    stage.stop_daemon();
    stage.remove_rules();  // a table that was added last, too
    Loop beside(stage.node(), writers[i]);
    (void)stage.start_daemon();
    (void)stage.wait_in_sync();
    rows[i].measured = beside.finish();
  }
  for (Row& row : rows) {
    row.want_largest_below(200);
    const Samples all = row.measured;
    report.add(std::move(row));
    report.add({"  the longest of those", size, "ms", {all.largest()}});
  }
}

}  // namespace shunt::bench
