#include "model/ipvs_annotations.h"

#include <catch2/catch_test_macros.hpp>

#include "model/endpoint.h"
#include "model/service_port.h"

namespace shunt::model {
namespace {

using Texts = std::vector<std::string>;

struct Read {
  std::optional<IpvsAnnotations> asked;
  Texts issues;
};
Read read(std::string scheduler, std::string weights) {
  kube::Service service;
  service.ipvs_scheduler = std::move(scheduler);
  service.ipvs_weights = std::move(weights);
  Read out;
  out.asked = ipvs_annotations(service, out.issues);
  return out;
}

std::uint16_t weight(
    const Read& got, const char* ip, const char* node, bool local, const char* zone) {
  REQUIRE(got.asked);
  return got.asked->weights.of(*net::parse_ip(ip), node, local, zone);
}

TEST_CASE("a Service without annotations asks IPVS for nothing") {
  CHECK_FALSE(read("", "").asked);
  CHECK_FALSE(read(" ", " , ,").asked);
}

TEST_CASE("every scheduler of the kernel can be asked for, and nothing else") {
  for (const char* name :
       {"rr", "wrr", "lc", "wlc", "sh", "mh", "sed", "nq", "dh", "lblc", "lblcr", "fo", "ovf"}) {
    const Read got = read(name, "");
    REQUIRE(got.asked);
    CHECK(got.asked->scheduler == name);
    CHECK(got.issues.empty());
  }
  for (const char* name : {"RR", "ip_vs_rr", "rr,wrr", "r"}) {
    const Read got = read(name, "");
    CHECK_FALSE(got.asked);
    CHECK(
        got.issues == Texts{
                          "annotation kube-shunt.io/ipvs-scheduler: \"" + std::string(name) +
                          "\" is no scheduler of IPVS, the configured one is used"});
  }
  CHECK(read("\nmh ", "").asked->scheduler == "mh");
}

TEST_CASE("the most specific weight counts, in whatever order they are written") {
  for (const char* text :
       {"zone:eu-1a=3, node:edge-a=2, address:10.64.0.7=5, local=4, *=6",
        "*=6,local=4,address:10.64.0.7=5,node:edge-a=2,zone:eu-1a=3"}) {
    const Read got = read("", text);
    CHECK(got.issues.empty());
    CHECK(weight(got, "10.64.0.7", "edge-a", true, "eu-1a") == 5);
    CHECK(weight(got, "10.64.0.8", "edge-a", true, "eu-1a") == 2);
    CHECK(weight(got, "10.64.0.8", "edge-b", true, "eu-1a") == 4);
    CHECK(weight(got, "10.64.0.8", "edge-b", false, "eu-1a") == 3);
    CHECK(weight(got, "10.64.0.8", "edge-b", false, "eu-1b") == 6);
    CHECK(weight(got, "10.64.0.8", "", false, "") == 6);
  }
}

TEST_CASE("an endpoint that nothing is said of has weight 1") {
  CHECK(weight(read("", "zone:a=0"), "10.0.0.1", "n", true, "b") == 1);
}

TEST_CASE("weights go from none to the largest that the API allows") {
  const Read got = read("", "address:fd00::1=0, address:10.0.0.1 = 65535");
  CHECK(got.issues.empty());
  CHECK(weight(got, "fd00::1", "", false, "") == 0);
  CHECK(weight(got, "10.0.0.1", "", false, "") == 65535);
}

TEST_CASE("a part that cannot be read is named and ignored, the rest counts") {
  const std::string prefix = "annotation kube-shunt.io/ipvs-weights: ";
  struct Case {
    const char* part;
    const char* issue;
  };
  constexpr char kNoWeight[] = "\" is no SELECTOR=WEIGHT with a weight from 0 to 65535";
  constexpr char kNobody[] = "\" selects nothing: zone:NAME, node:NAME, address:IP, local and * do";
  const Case cases[] = {
      {"zone:a", kNoWeight},
      {"zone:a=", kNoWeight},
      {"zone:a=65536", kNoWeight},
      {"zone:a=-1", kNoWeight},
      {"zone:a=+1", kNoWeight},
      {"zone:a=1.5", kNoWeight},
      {"zone:a=3=4", kNoWeight},
      {"=", kNoWeight},
      {"=3", kNobody},
      {"zone:=3", kNobody},
      {"node:=3", kNobody},
      {"zone=3", kNobody},
      {"address:10.0.0=3", kNobody},
      {"address:=3", kNobody},
      {"Local=3", kNobody},
      {"*:*=3", kNobody},
  };
  for (const Case& c : cases) {
    CAPTURE(c.part);
    const Read got = read("", "node:n=7," + std::string(c.part) + ",*=2");
    CHECK(got.issues == Texts{prefix + "\"" + c.part + c.issue});
    CHECK(weight(got, "10.0.0.1", "n", false, "a") == 7);
    CHECK(weight(got, "10.0.0.1", "m", false, "a") == 2);
  }
  const Read twice = read("", "*=2,local=1,*=3,zone:a=1,zone:a=4");
  CHECK(
      twice.issues == Texts{
                          prefix + "\"*\" is given twice, the later one counts",
                          prefix + "\"zone:a\" is given twice, the later one counts"});
  CHECK(weight(twice, "10.0.0.1", "n", false, "a") == 4);
  CHECK(weight(twice, "10.0.0.1", "n", false, "b") == 3);
}

TEST_CASE("what is too long counts as far as it is read, and complaints are few and printable") {
  std::string parts;
  for (std::size_t i = 0; i < kMaxWeightParts; ++i) {
    parts.append("node:n").append(std::to_string(i)).append("=2,");
  }
  CHECK(read("", parts).issues.empty());
  const Read many = read("", parts + "*=9");
  CHECK(many.issues.size() == 1);
  CHECK(weight(many, "10.0.0.1", "n255", false, "") == 2);
  CHECK(weight(many, "10.0.0.1", "m", false, "") == 1);

  // A number that is cut off is another number.
  std::string text(kube::kMaxIpvsWeights - 6, ' ');
  text.replace(0, 4, "*=2,");
  const Read cut = read("", text + "local=34");
  CHECK(cut.issues.size() == 1);
  CHECK(weight(cut, "10.0.0.1", "", true, "") == 2);

  const Read nonsense = read("\xff\n", std::string(100, '\n') + "\x01=," + std::string(4000, ','));
  REQUIRE(nonsense.issues.size() == 2);
  CHECK_FALSE(nonsense.asked);
  std::string wrong;
  for (int i = 0; i < 20; ++i) {
    wrong.append("\xfe\xff=x,");
  }
  const Read bad = read("", wrong);
  CHECK(bad.issues.size() == 9);
  CHECK(
      bad.issues.back() == "annotation kube-shunt.io/ipvs-weights: 12 more complaints like these");
  for (const std::string& issue : bad.issues) {
    for (const char c : issue) {
      CHECK((c >= ' ' && c <= '~'));
    }
  }
}

TEST_CASE("the ports of a Service have its annotations, which harm none of them") {
  kube::Service s;
  s.cluster_ip = "10.112.0.1";
  s.ports = {{"a", "TCP", 80, 0}, {"b", "TCP", 81, 0}};
  CHECK_FALSE(service_ports(s, net::Family::IPv4).ports.at(0).ipvs);
  s.ipvs_scheduler = "sh";
  s.ipvs_weights = "*=2,nonsense";
  const ServicePorts got = service_ports(s, net::Family::IPv4);
  CHECK(got.issues.size() == 1);
  REQUIRE(got.ports.size() == 2);
  REQUIRE(got.ports[0].ipvs);
  CHECK(got.ports[0].ipvs->scheduler == "sh");
  CHECK(got.ports[0].ipvs->weights.all == 2);
  CHECK(got.ports[1].ipvs == got.ports[0].ipvs);
}

TEST_CASE("endpoints get their weights where node and zone are known") {
  auto slice = std::make_shared<kube::EndpointSlice>();
  slice->address_type = "IPv4";
  slice->ports = {{"http", "TCP", 8080}};
  const auto add = [&](const char* ip, const char* node, const char* zone) {
    kube::SliceEndpoint& e = slice->endpoints.emplace_back();
    e.address = net::parse_ip(ip);
    e.node_name = node;
    e.zone = zone;
  };
  add("10.0.0.1", "here", "a");
  add("10.0.0.2", "there", "a");
  add("10.0.0.3", "", "");
  const std::vector<std::shared_ptr<const kube::EndpointSlice>> slices{slice};
  const auto of = [&](const EndpointWeights* weights) {
    const auto merged = merge_slices(slices, net::Family::IPv4, "here", weights);
    std::vector<std::uint16_t> out;
    for (const Endpoint& e : merged.ports.at(0).endpoints) {
      out.push_back(e.weight);
    }
    return out;
  };
  CHECK(of(nullptr) == std::vector<std::uint16_t>{1, 1, 1});
  const Read got = read("", "local=4,zone:a=3,*=0");
  CHECK(of(&got.asked->weights) == std::vector<std::uint16_t>{4, 3, 0});
}

}  // namespace
}  // namespace shunt::model
