// Bar charts side by side as one SVG picture, with a logarithmic scale, for a README that may be
// read on a light or a dark page. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shunt::bench {

struct Series {
  std::string name;
  std::vector<std::optional<double>> values;  // one a group; nothing: no bar
};

struct Chart {
  std::string title;
  std::vector<std::string> groups;
  std::vector<Series> series;
};

// Charts without a positive value are left out; "" when none is left. `note` stands below them.
std::string render_svg(const std::vector<Chart>& charts, const std::string& note);

}  // namespace shunt::bench
