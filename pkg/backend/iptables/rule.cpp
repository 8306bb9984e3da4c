#include "backend/iptables/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/iptables/names.h"

namespace shunt::backend::iptables {
namespace {

std::string range_option(const char* option, const net::Cidr& range, bool negated) {
  if (range.prefix_length == 0) {
    return "";
  }
  return fmt::format("{}{} {} ", negated ? "! " : "", option, net::to_string(range));
}

// iptables-save quotes what has any other character.
bool needs_no_quotes(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

}  // namespace

Rule& Rule::from(const net::Cidr& range, bool negated) {
  source_ = range_option("-s", range, negated);
  return *this;
}

Rule& Rule::to(const net::Cidr& range, bool negated) {
  destination_ = range_option("-d", range, negated);
  return *this;
}

Rule& Rule::in_by(std::string_view device, bool negated) {
  device_ = fmt::format("{}-i {} ", negated ? "! " : "", device);
  return *this;
}

Rule& Rule::protocol(net::Protocol protocol) {
  protocol_ = word(protocol);
  return *this;
}

Rule& Rule::comment(std::string_view text) {
  std::string shown(text.substr(0, kLongestComment));
  for (char& c : shown) {
    if (c < ' ' || c > '~' || c == '"' || c == '\'' || c == '\\') {
      c = '?';
    }
  }
  const char* const quote = needs_no_quotes(shown) ? "" : "\"";
  matches_ += fmt::format("-m comment --comment {}{}{} ", quote, shown, quote);
  return *this;
}

Rule& Rule::match(std::string_view text) {
  matches_.append(text).append(" ");
  return *this;
}

Rule& Rule::to_port(net::Port port) {
  matches_ += fmt::format("-m {} --dport {} ", protocol_, net::number(port));
  return *this;
}

Rule& Rule::jump(std::string_view target) {
  target_ = fmt::format("-j {} ", target);
  return *this;
}

std::string Rule::text() const {
  std::string out = source_ + destination_ + device_;
  if (!protocol_.empty()) {
    out += fmt::format("-p {} ", protocol_);
  }
  out += matches_ + target_;
  if (!out.empty()) {
    out.pop_back();
  }
  return out;
}

net::Cidr alone(const net::IpAddress& ip) { return {ip, static_cast<std::uint8_t>(ip.size() * 8)}; }

std::string one_of(std::size_t choices) {
  constexpr double kSteps = 2147483648.0;
  const double share = std::round(kSteps / static_cast<double>(choices)) / kSteps;
  return fmt::format("-m statistic --mode random --probability {:.11f}", share);
}

}  // namespace shunt::backend::iptables
