// A cluster in one machine: a node, pods on it, and "outside", which is everybody beyond the node's
// uplink (pods of other nodes, those nodes, clients on the internet). Each is a network namespace.
//
//   pods  --- pod links --- node --- uplink --- outside
//
// The node forwards; its neighbours are static entries, so no ARP or neighbour discovery blurs a
// packet count and nothing waits for duplicate address detection. Outside answers for every address
// in `outside_hosts` and receives whatever else the node sends up the link, so a packet can be seen
// wherever it comes out. Towards the pods the node has an address of its own, which is not the
// node's address, so that a rewritten source shows.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "net/cidr.h"
#include "net/ip_address.h"
#include "netns/netns.h"

namespace shunt::lab {

struct PodSpec {
  std::string name;  // its place: the namespace is shunt-<owner>-<name>
  std::vector<net::IpAddress> ips;
};

struct LabSpec {
  std::string owner;  // "": this process, and the lab goes with it

  std::vector<net::IpAddress> node_addresses;  // on the uplink; the first of a family is the source
  std::vector<net::IpAddress> node_pod_side;   // the node's end of every pod link, one a family
  // False sets all.disable_ipv6 on the node, which is how a node says that it has no IPv6
  // (spec/config.md §6). Its links go on carrying IPv6.
  bool node_speaks_ipv6 = true;

  enum class Links { Veth, Bridge };
  Links links = Links::Veth;
  std::string link_name = "pod";  // prefix of the node's veth names, or the name of the bridge

  // One namespace a pod. Real connections between pods work.
  std::vector<PodSpec> pods;
  // Or one place "pods" that holds all addresses of these ranges behind a single link: as many pods
  // as wanted for the price of one. A pod there cannot hold a conversation with another pod there.
  std::vector<net::Cidr> shared_pods;

  std::vector<net::Cidr> outside_hosts;  // never part of a pod's range
};

// The address plan of test/conformance/README.md: edge-a with two addresses a family, outside with
// the pods of three other nodes, those nodes, and clients. No pods.
LabSpec default_lab_spec();

class Lab {
 public:
  explicit Lab(LabSpec spec);
  Lab(Lab&&) = default;
  Lab& operator=(Lab&&) = delete;
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  ~Lab();

  const LabSpec& spec() const { return spec_; }
  const Netns& place(std::string_view name) const;  // "node", "outside", "pods" or a pod's name
  const Netns& node() const { return place("node"); }
  const Netns& outside() const { return place("outside"); }

  void add_node_address(const net::IpAddress& ip) const;
  void remove_node_address(const net::IpAddress& ip) const;
  // Runs a script of `ip -batch` in a place.
  void ip_batch(std::string_view place_name, const std::string& script) const;

  // Leaves the namespaces where they are: a lab kept by name outlives the process that made it.
  void keep() { keep_ = true; }

 private:
  LabSpec spec_;
  std::map<std::string, Netns, std::less<>> places_;
  bool keep_ = false;
};

// Ends what runs in the namespaces of a lab kept by name, and removes them.
void remove_lab(const std::string& owner);

}  // namespace shunt::lab
