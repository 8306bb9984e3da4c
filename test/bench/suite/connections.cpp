// What a new connection costs: to a random ClusterIP of the load, to a pod without any rules, and
// through a chain for each Service. Batches of the three in turn, so that all see the same machine.

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "bench/suite/acceptor.h"
#include "bench/suite/chains.h"
#include "bench/suite/client.h"
#include "bench/suite/measure.h"
#include "bench/suite/objects.h"
#include "netlink/attributes.h"
#include "netlink/messages.h"
#include "netlink/socket.h"
#include "netns/sockets.h"

namespace shunt::bench {
namespace {

constexpr std::size_t kBatch = 500;

// One way from a client to a pod: where the client is, and whom it may call.
struct Way {
  const lab::Netns* clients = nullptr;
  std::vector<lab::RawAddress> addresses;
};

void connect_once(const lab::RawAddress& to) {
  const UniqueFd fd = open_client(net::Protocol::Tcp, true);
  if (::connect(fd.get(), to.get(), to.length) != 0) {
    throw std::runtime_error("a connect to " + net::to_string(lab::from_raw(to)) + " failed");
  }
}

double connects_a_second(const Way& way, std::mt19937& random) {
  return way.clients->run([&] {
    std::uniform_int_distribution<std::size_t> any(0, way.addresses.size() - 1);
    const Nanoseconds begin = now_ns();
    for (std::size_t i = 0; i < kBatch; ++i) {
      connect_once(way.addresses[any(random)]);
    }
    return static_cast<double>(kBatch) / seconds(now_ns() - begin);
  });
}

// The load's frontends as they are in the kernel: 10.96.0.0/12, TCP port 80.
std::vector<lab::RawAddress> frontends_in_kernel(const lab::Netns& node) {
  return node.run([] {
    auto socket = netlink::Socket::open();
    netlink::Attributes request;
    request.put_string(NFTA_SET_ELEM_LIST_TABLE, "kube-shunt");
    request.put_string(NFTA_SET_ELEM_LIST_SET, "service-ips");
    std::vector<lab::RawAddress> out;
    const auto add = [&](netlink::AttributeBytes item) {
      const auto key = netlink::find_attribute(item, NFTA_SET_ELEM_KEY);
      const auto bytes = key ? netlink::find_attribute(*key, NFTA_DATA_VALUE) : std::nullopt;
      if (bytes && bytes->size() == 12 && (*bytes)[0] == 10 && (*bytes)[1] >= 96 &&
          (*bytes)[1] < 111 && (*bytes)[8] == 0 && (*bytes)[9] == 80) {
        out.push_back(
            lab::to_raw({lab::ip_from_bytes(net::Family::IPv4, bytes->data()), net::Port{80}}));
      }
    };
    if (socket) {
      (void)(*socket)->dump(  // an empty answer is what the caller complains about
          NFNL_SUBSYS_NFTABLES,
          NFT_MSG_GETSETELEM,
          AF_INET,
          request.bytes(),
          [&](netlink::AttributeBytes message) {
            const auto list = netlink::find_attribute(message, NFTA_SET_ELEM_LIST_ELEMENTS);
            if (list) {
              netlink::for_each_attribute(
                  *list, [&](std::uint16_t, netlink::AttributeBytes item) { add(item); });
            }
          });
    }
    return out;
  });
}

lab::LabSpec plain_lab() {
  lab::LabSpec spec = lab::default_lab_spec();
  spec.shared_pods = {net::parse_cidr("10.128.0.0/9").value()};
  return spec;
}

// A lab whose node has the chains; how long loading them took.
class ChainLab {
 public:
  ChainLab(const LoadSize& load, const std::string& directory) : lab_(plain_lab()) {
    const std::string file = directory + "/chains.nft";
    std::ofstream(file) << chain_per_service(load.services, load.endpoints);
    const Nanoseconds begin = now_ns();
    (void)lab::run_program(
        {"ip", "netns", "exec", lab_.node().name(), "timeout", "600", "nft", "-f", file});
    load_seconds = seconds(now_ns() - begin);
    for (std::size_t s = 0; s < load.services; ++s) {
      way.addresses.push_back(lab::to_raw(load_address(s)));
    }
    way.clients = &lab_.outside();
  }
  Way way;
  double load_seconds = 0;

 private:
  lab::Lab lab_;
  Acceptor acceptor_{lab_.place("pods")};
};

}  // namespace

void measure_connections(Stage& stage, const Options& options, Report& report) {
  const std::string size = stage.load().text();
  const lab::Lab bare(plain_lab());
  const Acceptor bare_acceptor(bare.place("pods"));
  const Acceptor acceptor(stage.pods());
  Way direct{&bare.outside(), {}};
  for (std::size_t pod = 0; pod < stage.load().services; ++pod) {
    direct.addresses.push_back(lab::to_raw(load_pod(pod)));
  }
  const Way ours{&stage.clients(), frontends_in_kernel(stage.node())};
  if (ours.addresses.size() < stage.load().services) {
    throw std::runtime_error("the kernel does not have all Services of the load");
  }
  std::unique_ptr<ChainLab> chains;
  if (stage.load().services > 10'000) {
    report.skip(
        "connects through a chain per Service, " + size,
        "nft needs minutes to hours to load that many chains");
  } else if (stage.load().services > 1'000 && options.quick) {
    report.skip("connects through a chain per Service, " + size, "--quick");
  } else {
    chains = std::make_unique<ChainLab>(stage.load(), stage.directory());
  }

  std::mt19937 random(9);
  Samples without;
  Row row{kConnects, size, "/s"};
  Row other{"  through a chain per Service", size, "/s"};
  for (int batch = 0; batch < (options.quick ? 6 : 40); ++batch) {
    without.add(connects_a_second(direct, random));
    row.measured.add(connects_a_second(ours, random));
    if (chains) {
      other.measured.add(connects_a_second(chains->way, random));
    }
  }
  row.against("no NAT", without);
  report.add(std::move(row));
  if (chains) {
    other.against("no NAT", without);
    report.add(std::move(other));
    report.add({"  loading those chains with nft", size, "s", {chains->load_seconds}});
  }
}

}  // namespace shunt::bench
