// Runs the flows of a case in its lab: sends first packets, watches where they come out, and
// judges.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/lab.h"
#include "packet/first_packet.h"
#include "packet/judge.h"
#include "packet/packet_case.h"
#include "packet/sightings.h"

namespace shunt::conformance::packet {

class FlowRunner {
 public:
  // `patience`: how much longer than on an ordinary machine everything may take.
  FlowRunner(const lab::Lab& lab, const std::vector<std::string>& places, int patience);

  // Answers what is wrong, or nothing. `keeps_sending`: the flow's UDP socket is of use in later
  // steps. `holds`: its connection stays open for a flow that comes after it.
  std::optional<std::string> run(const Flow& flow, bool keeps_sending, bool holds);

 private:
  struct Held {
    Attempt attempt;
    std::optional<Sighting> answer;  // the server's SYN-ACK, as the client saw it
  };
  using KeptKey = std::pair<net::SocketAddress, net::SocketAddress>;  // from, to

  const lab::Netns& place_of(const Flow& flow) const;
  std::vector<Attempt> send(const Flow& flow, std::size_t count);
  std::vector<Observation> observe(const Flow& flow, std::vector<Attempt>& attempts);
  std::optional<std::string> judge_batch(
      const Flow& flow, const std::vector<Observation>& batch, FlowRecord& record) const;
  std::optional<std::string> run_connections(const Flow& flow);
  std::optional<std::string> run_kept_socket(const Flow& flow);
  std::optional<std::string> run_held(const Flow& flow);
  std::optional<std::string> run_stray_segment(const Flow& flow);

  const lab::Lab* lab_;
  Sightings sightings_;
  int patience_;
  std::uint32_t next_id_;
  std::uint16_t next_port_;
  std::map<KeptKey, Attempt> kept_;
  std::map<std::string, Held> held_;                             // by the flow's name
  std::map<std::string, std::set<net::SocketAddress>> reached_;  // by the flow's name
};

}  // namespace shunt::conformance::packet
