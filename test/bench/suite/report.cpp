#include "bench/suite/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shunt::bench {
namespace {

using nlohmann::json;

using Cells = std::array<std::string, 9>;
constexpr std::array<bool, 9> kToTheRight{false, true, true, true, true, true, false, false, true};

std::string with_unit(double value, const std::string& unit) {
  return three_digits(value) + (unit.empty() ? "" : " " + unit);
}

Cells cells_of(const Row& row) {
  std::string targets;
  for (const Target& target : row.targets) {
    targets += (targets.empty() ? "" : ", ") + target.text;
  }
  const auto ratio = row.ratio();
  return {
      row.what,
      row.size,
      row.measured.empty() ? "-" : with_unit(row.measured.median(), row.unit),
      row.measured.size() > 1 ? three_digits(row.measured.p99()) : "",
      row.base.empty() ? "" : three_digits(row.base.median()) + " " + row.base_name,
      ratio ? fmt::format("{:.2f}", *ratio) : "",
      targets,
      row.targets.empty() ? "" : (row.met() ? "yes" : "MISSED"),
      row.kube_proxy.empty() ? "" : with_unit(row.kube_proxy.median(), row.unit)};
}

// Characters, not bytes; texts here are ASCII.
std::string aligned(const std::vector<Cells>& lines, bool last_column) {
  Cells::size_type columns = std::tuple_size_v<Cells> - (last_column ? 0 : 1);
  std::array<std::size_t, std::tuple_size_v<Cells>> widths{};
  for (const Cells& line : lines) {
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], line[c].size());
    }
  }
  std::string out;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    std::string text;
    for (std::size_t c = 0; c < columns; ++c) {
      text += kToTheRight[c] ? fmt::format("{:>{}}", lines[l][c], widths[c])
                             : fmt::format("{:<{}}", lines[l][c], widths[c]);
      text += c + 1 < columns ? "  " : "";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
    if (l == 0) {
      out += std::string(text.size(), '-') + "\n";
    }
  }
  return out;
}

json to_json(const Samples& samples) {
  return {
      {"median", samples.median()},
      {"p99", samples.p99()},
      {"largest", samples.largest()},
      {"samples", samples.values()}};
}

json to_json(const Row& row) {
  json out{
      {"what", row.what},
      {"size", row.size},
      {"unit", row.unit},
      {"measured", to_json(row.measured)},
      {"targets", json::array()}};
  if (!row.base.empty()) {
    out["against"] = to_json(row.base);
    out["against"]["name"] = row.base_name;
  }
  if (const auto ratio = row.ratio()) {
    out["ratio"] = *ratio;
  }
  if (!row.kube_proxy.empty()) {
    out["kubeProxy"] = to_json(row.kube_proxy);
  }
  for (const Target& target : row.targets) {
    out["targets"].push_back({{"text", target.text}, {"met", target.met}});
  }
  return out;
}

}  // namespace

std::optional<double> Row::ratio() const {
  if (measured.empty() || base.empty() || base.median() <= 0) {
    return std::nullopt;
  }
  return measured.median() / base.median();
}

void Row::against(std::string name, Samples samples) {
  base_name = std::move(name);
  base = std::move(samples);
}

void Row::want_median_below(double limit) {
  const std::string name = measured.size() > 1 ? "p50 < " : "< ";
  targets.push_back({name + three_digits(limit), !measured.empty() && measured.median() < limit});
}

void Row::want_p99_below(double limit) {
  targets.push_back({"p99 < " + three_digits(limit), !measured.empty() && measured.p99() < limit});
}

void Row::want_largest_below(double limit) {
  targets.push_back(
      {"all < " + three_digits(limit), !measured.empty() && measured.largest() < limit});
}

void Row::want_ratio_below(double limit) {
  const auto now = ratio();
  targets.push_back({fmt::format("< {:.1f}x", limit), now && *now < limit});
}

void Row::want_exactly(double value) {
  const bool all = std::all_of(
      measured.values().begin(), measured.values().end(), [&](double v) { return v == value; });
  targets.push_back({three_digits(value), !measured.empty() && all});
}

bool Row::met() const {
  return std::all_of(targets.begin(), targets.end(), [](const Target& t) { return t.met; });
}

Row& Report::add(Row row) { return rows_.emplace_back(std::move(row)); }

void Report::skip(std::string what, std::string why) {
  skipped_.push_back({std::move(what), std::move(why)});
}

void Report::fail(std::string what, std::string why) {
  failed_.push_back({std::move(what), std::move(why)});
}

Row* Report::find(const std::string& what, const std::string& size) {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.what == what && row.size == size;
  });
  return found == rows_.end() ? nullptr : &*found;
}

std::size_t Report::missed() const {
  const auto rows =
      std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return !row.met(); });
  return static_cast<std::size_t>(rows) + failed_.size();
}

std::string Report::table(const Machine& machine) const {
  std::vector<Cells> lines{
      {"what", "size", "p50", "p99", "against", "ratio", "target", "ok?", "kube-proxy"}};
  bool compared = false;
  for (const Row& row : rows_) {
    lines.push_back(cells_of(row));
    compared = compared || !row.kube_proxy.empty();
  }
  std::string out = fmt::format(
      "{} cores ({}), Linux {}, commit {}, {} build\n\n{}",
      machine.cores,
      machine.processor,
      machine.kernel,
      machine.commit,
      machine.build,
      aligned(lines, compared));
  for (const Skipped& skipped : skipped_) {
    out += fmt::format("SKIP {}: {}\n", skipped.what, skipped.why);
  }
  for (const Skipped& failed : failed_) {
    out += fmt::format("FAILED {}: {}\n", failed.what, failed.why.substr(0, failed.why.find('\n')));
  }
  return out;
}

json Report::json(const Machine& machine) const {
  nlohmann::json out{
      {"machine",
       {{"cores", machine.cores}, {"processor", machine.processor}, {"kernel", machine.kernel}}},
      {"commit", machine.commit},
      {"build", machine.build},
      {"rows", nlohmann::json::array()},
      {"skipped", nlohmann::json::array()},
      {"failed", nlohmann::json::array()}};
  for (const Row& row : rows_) {
    out["rows"].push_back(to_json(row));
  }
  for (const Skipped& skipped : skipped_) {
    out["skipped"].push_back({{"what", skipped.what}, {"why", skipped.why}});
  }
  for (const Skipped& failed : failed_) {
    out["failed"].push_back({{"what", failed.what}, {"why", failed.why}});
  }
  return out;
}

}  // namespace shunt::bench
