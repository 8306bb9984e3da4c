// What became of one connection, and whether that is what the case expects. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packet/packet_case.h"
#include "packet/sightings.h"

namespace shunt::conformance::packet {

struct Observation {
  net::SocketAddress sent_from;
  std::optional<Sighting> seen;  // where the first packet came out
  int error = 0;                 // what the client was told
  bool decided() const { return seen.has_value() || error != 0; }
};

std::string describe(const Observation& observation);

// Why one connection alone is already wrong; nothing when it may be right.
std::optional<std::string> problem_of(const Flow& flow, const Observation& observation);

// The source was rewritten to itself: masquerading draws a port at random, and may draw the one
// that was there. One connection in 64 thousand; two of one flow are no accident.
bool keeps_its_source(const Observation& observation);

// What a whole flow has shown so far: the rules that need more than one connection.
class FlowRecord {
 public:
  explicit FlowRecord(const Flow& flow) : flow_(&flow) {}

  // Takes an observation that is right by itself. A problem that shows only now.
  std::optional<std::string> add(const Observation& observation);
  // How many connections make a wrong "not all were reached" improbable (below one in a million).
  std::size_t wanted_connections() const;
  // Nothing more can be learned.
  bool satisfied() const;
  // Called when the connections have been made: what is missing.
  std::optional<std::string> missing() const;
  const std::set<net::SocketAddress>& reached() const { return reached_; }

 private:
  bool spreads() const;

  const Flow* flow_;
  std::size_t connections_ = 0;
  std::size_t kept_source_ = 0;
  std::set<net::SocketAddress> reached_;
};

}  // namespace shunt::conformance::packet
