// The lab that a case asks for: node addresses and pod links from its settings, everything else by
// the bank's address plan.
#pragma once

#include "netns/lab.h"
#include "packet/packet_case.h"

namespace shunt::conformance::packet {

lab::LabSpec lab_spec_of(const Case& packet_case);

}  // namespace shunt::conformance::packet
