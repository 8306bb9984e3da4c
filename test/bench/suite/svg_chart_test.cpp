#include "bench/suite/svg_chart.h"

#include <catch2/catch_test_macros.hpp>
#include <regex>

namespace shunt::bench {
namespace {

// Heights of the bars of one colour, from left to right; the legend's box is not one of them.
std::vector<double> heights(const std::string& svg, const std::string& colour) {
  const std::regex box("width=\"([0-9.]+)\" height=\"([0-9.]+)\" fill=\"" + colour + "\"");
  std::vector<double> out;
  for (std::sregex_iterator at(svg.begin(), svg.end(), box), end; at != end; ++at) {
    if ((*at)[1] != "10.0" || (*at)[2] != "10.0") {
      out.push_back(std::stod((*at)[2]));
    }
  }
  return out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST_CASE("bars grow with the logarithm of what they stand for") {
  const std::string svg = render_svg({{"t", {"a", "b", "c"}, {{"s", {1.0, 10.0, 100.0}}}}}, "note");
  const std::vector<double> bars = heights(svg, "#2f6fb3");
  REQUIRE(bars.size() == 3);
  CHECK(bars[0] > 0);
  CHECK(bars[1] - bars[0] > 10);
  CHECK(std::abs((bars[2] - bars[1]) - (bars[1] - bars[0])) < 0.2);
}

TEST_CASE("every value is written at its bar") {
  const std::string svg = render_svg({{"t", {"1k"}, {{"p50", {0.1234}}, {"p99", {56.78}}}}}, "");
  CHECK(svg.find(">0.123<") != std::string::npos);
  CHECK(svg.find(">56.8<") != std::string::npos);
  CHECK(svg.find(">1k<") != std::string::npos);
  CHECK(svg.find(">p99<") != std::string::npos);
}

TEST_CASE("what was not measured has no bar") {
  const std::string svg = render_svg(
      {{"t", {"a", "b"}, {{"s", {5.0, std::nullopt}}, {"zero", {0.0}}}}, {"nothing", {"a"}, {}}},
      "");
  CHECK(heights(svg, "#2f6fb3").size() == 1);
  CHECK(heights(svg, "#8fb8de").empty());
  CHECK(svg.find("nothing") == std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("nothing to draw is no picture") {
  CHECK(render_svg({}, "note").empty());
  CHECK(render_svg({{"t", {"a"}, {{"s", {std::nullopt}}}}}, "note").empty());
}

TEST_CASE("names are escaped, and what is opened is closed") {
  const std::string svg = render_svg({{"a < b & \"c\"", {"<g>"}, {{"s", {1.0}}}}}, "1 > 0");
  CHECK(svg.find("a &lt; b &amp; &quot;c&quot;") != std::string::npos);
  CHECK(svg.find("<g>") == std::string::npos);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<text ") == count(svg, "</text>"));
}

}  // namespace
}  // namespace shunt::bench
