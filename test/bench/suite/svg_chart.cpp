#include "bench/suite/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "bench/suite/samples.h"

namespace shunt::bench {
namespace {

constexpr double kChartWidth = 300;
constexpr double kMargin = 16;
constexpr double kTop = 64;  // of the bars; title and legend are above
constexpr double kBarRoom = 170;
constexpr double kHeight = kTop + kBarRoom + 60;
constexpr std::array<const char*, 4> kColours{"#2f6fb3", "#8fb8de", "#c46a2d", "#777777"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Whole decades around the values.
struct Scale {
  double low = 0;
  double high = 1;
  double height(double value) const { return kBarRoom * (std::log10(value) - low) / (high - low); }
};

std::optional<Scale> scale_of(const Chart& chart) {
  std::optional<Scale> scale;
  for (const Series& series : chart.series) {
    for (const auto& value : series.values) {
      if (!value || !std::isfinite(*value) || *value <= 0) {
        continue;
      }
      // A value on a decade still gets a bar, and one just below the next has room for its text.
      const double low = std::ceil(std::log10(*value)) - 1;
      const double high = std::floor(std::log10(*value) + 0.1) + 1;
      scale =
          scale ? Scale{std::min(scale->low, low), std::max(scale->high, high)} : Scale{low, high};
    }
  }
  return scale;
}

class Drawing {
 public:
  std::string text() && { return std::move(text_); }

  void put_text(double x, double y, const char* look, const std::string& content) {
    fmt::format_to(
        std::back_inserter(text_),
        "<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n",
        x,
        y,
        look,
        escaped(content));
  }
  void put_box(double x, double y, double width, double height, const char* colour) {
    fmt::format_to(
        std::back_inserter(text_),
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
        x,
        y,
        width,
        height,
        colour);
  }

 private:
  std::string text_;
};

void draw_legend(Drawing& drawing, const Chart& chart, double left) {
  double x = left;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    drawing.put_box(x, 34, 10, 10, kColours[s % kColours.size()]);
    drawing.put_text(x + 14, 43, "font-size=\"11\"", chart.series[s].name);
    x += 28 + 6.2 * static_cast<double>(chart.series[s].name.size());
  }
}

void draw(Drawing& drawing, const Chart& chart, const Scale& scale, double left) {
  const double width = kChartWidth - 2 * kMargin;
  drawing.put_text(left, 22, "font-size=\"13\" font-weight=\"bold\"", chart.title);
  draw_legend(drawing, chart, left);
  const double group_width = width / static_cast<double>(chart.groups.size());
  const double bar_width = 0.8 * group_width / static_cast<double>(chart.series.size());
  const double floor = kTop + kBarRoom;
  drawing.put_box(left, floor, width, 1, "#999999");
  for (std::size_t g = 0; g < chart.groups.size(); ++g) {
    const double group = left + group_width * static_cast<double>(g);
    drawing.put_text(
        group + group_width / 2,
        floor + 16,
        "font-size=\"11\" text-anchor=\"middle\"",
        chart.groups[g]);
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      const Series& series = chart.series[s];
      const auto value = g < series.values.size() ? series.values[g] : std::nullopt;
      if (!value || !std::isfinite(*value) || *value <= 0) {
        continue;
      }
      const double x = group + 0.1 * group_width + bar_width * static_cast<double>(s);
      const double height = scale.height(*value);
      drawing.put_box(x, floor - height, bar_width - 2, height, kColours[s % kColours.size()]);
      drawing.put_text(
          x + bar_width / 2 - 1,
          floor - height - 4,
          "font-size=\"10\" text-anchor=\"middle\"",
          three_digits(*value));
    }
  }
}

}  // namespace

std::string render_svg(const std::vector<Chart>& charts, const std::string& note) {
  Drawing drawing;
  double left = kMargin;
  for (const Chart& chart : charts) {
    const auto scale = scale_of(chart);
    if (scale && !chart.groups.empty()) {
      draw(drawing, chart, *scale, left);
      left += kChartWidth;
    }
  }
  if (left == kMargin) {
    return {};
  }
  drawing.put_text(kMargin, kHeight - 12, "font-size=\"10\" fill=\"#555555\"", note);
  const double width = left - kMargin;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\">\n"
      "<rect x=\"0\" y=\"0\" width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n{2}</svg>\n",
      width,
      kHeight,
      std::move(drawing).text());
}

}  // namespace shunt::bench
