// A LabSpec in the words of `ip -batch`: pure text, so that the wiring can be read in one place.
#pragma once

#include <string>
#include <vector>

#include "netns/lab.h"

namespace shunt::lab {

struct PlaceScript {
  std::string place;
  std::string text;
};

// The names of all places: "node", "outside", then the pods.
std::vector<std::string> places_of(const LabSpec& spec);
// Run outside of all namespaces: makes the links and hands their ends out.
std::string link_script(const LabSpec& spec);
// Run in each place, in any order, once the links are there.
std::vector<PlaceScript> place_scripts(const LabSpec& spec);

}  // namespace shunt::lab
