#include "packet/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shunt::conformance::packet {
namespace {

bool contains(const std::vector<net::SocketAddress>& list, const net::SocketAddress& address) {
  return std::ranges::find(list, address) != list.end();
}

std::string list_of(const std::vector<net::SocketAddress>& addresses) {
  std::string text;
  for (const net::SocketAddress& address : addresses) {
    if (text.size() > 200) {
      return text + " ...";
    }
    text += (text.empty() ? "" : " ") + net::to_string(address);
  }
  return text;
}

// Must the source of a connection that reached `endpoint` be rewritten?
std::optional<bool> wanted_snat(const Flow& flow, const net::SocketAddress& endpoint) {
  if (contains(flow.expect.snat_for, endpoint)) {
    return true;
  }
  return flow.expect.snat;
}

std::optional<std::string> endpoint_problem(const Flow& flow, const Observation& observation) {
  if (!observation.seen) {
    return "expected an endpoint, but the packet " + describe(observation);
  }
  const Sighting& seen = *observation.seen;
  if (!contains(flow.expect.endpoints, seen.to)) {
    return fmt::format(
        "expected one of [{}], but the packet {}",
        list_of(flow.expect.endpoints),
        describe(observation));
  }
  const std::optional<bool> snat = wanted_snat(flow, seen.to);
  if (snat == false && !keeps_its_source(observation)) {
    return "expected the source as sent, but the packet " + describe(observation);
  }
  if (snat == true && seen.from.ip == observation.sent_from.ip && flow.place != Place::Node &&
      flow.place != Place::Localhost) {
    return "expected a rewritten source, but the packet " + describe(observation);
  }
  return std::nullopt;
}

}  // namespace

std::string describe(const Observation& observation) {
  std::string text;
  if (observation.seen) {
    text = fmt::format(
        "from {} arrived in {} at {} with source {}",
        net::to_string(observation.sent_from),
        observation.seen->place,
        net::to_string(observation.seen->to),
        net::to_string(observation.seen->from));
  }
  if (observation.error != 0) {
    text += fmt::format(
        "{}was refused ({})", text.empty() ? "" : " and ", std::strerror(observation.error));
  }
  return text.empty() ? "vanished" : text;
}

bool keeps_its_source(const Observation& observation) {
  return observation.seen && observation.seen->from == observation.sent_from;
}

std::optional<std::string> problem_of(const Flow& flow, const Observation& observation) {
  const bool as_sent =
      observation.seen && observation.seen->to == flow.to && keeps_its_source(observation);
  switch (flow.expect.verdict) {
    case Verdict::Endpoints:
      return endpoint_problem(flow, observation);
    case Verdict::Reject:
      if (observation.seen || observation.error == 0) {
        return "expected a refusal, but the packet " + describe(observation);
      }
      return std::nullopt;
    case Verdict::Drop:
    case Verdict::NotSeen:
      if (observation.decided()) {
        return "expected silence, but the packet " + describe(observation);
      }
      return std::nullopt;
    case Verdict::NoMatch:
      if (!as_sent) {
        return "expected to pass untouched, but the packet " + describe(observation);
      }
      return std::nullopt;
  }
  return std::nullopt;
}

bool FlowRecord::spreads() const {
  return flow_->expect.verdict == Verdict::Endpoints && !flow_->sticky;
}

std::size_t FlowRecord::wanted_connections() const {
  if (flow_->count > 0) {
    return flow_->count;
  }
  if (flow_->sample > 0) {
    return flow_->sample;
  }
  constexpr std::size_t kFew = 4;  // for answers that do not depend on chance
  if (flow_->expect.verdict != Verdict::Endpoints || flow_->expect.endpoints.size() < 2) {
    return kFew;
  }
  const auto n = static_cast<double>(flow_->expect.endpoints.size());
  const double wanted = std::log(n * 1e6) / -std::log1p(-1 / n);
  return std::max(kFew, static_cast<std::size_t>(std::ceil(wanted)));
}

std::optional<std::string> FlowRecord::add(const Observation& observation) {
  ++connections_;
  if (!observation.seen) {
    return std::nullopt;
  }
  const net::SocketAddress& to = observation.seen->to;
  reached_.insert(to);
  if (flow_->sticky && reached_.size() > 1) {
    return "expected one and the same endpoint, but another connection went elsewhere: the "
           "packet " +
           describe(observation);
  }
  if (flow_->expect.verdict == Verdict::Endpoints && wanted_snat(*flow_, to) == true &&
      keeps_its_source(observation) && ++kept_source_ > 1) {
    return "expected a rewritten source, but the packet " + describe(observation);
  }
  return std::nullopt;
}

bool FlowRecord::satisfied() const {
  if (!spreads() || flow_->sample > 0) {
    return connections_ >= wanted_connections();
  }
  if (flow_->gap.count() > 0) {
    return reached_.size() > 1;
  }
  return reached_.size() == flow_->expect.endpoints.size() && connections_ >= 3;
}

std::optional<std::string> FlowRecord::missing() const {
  if (!spreads() || flow_->sample > 0 || satisfied()) {
    return std::nullopt;
  }
  std::vector<net::SocketAddress> missing;
  for (const net::SocketAddress& endpoint : flow_->expect.endpoints) {
    if (!reached_.contains(endpoint)) {
      missing.push_back(endpoint);
    }
  }
  return fmt::format(
      "{} connections, and none of them reached [{}]", connections_, list_of(missing));
}

}  // namespace shunt::conformance::packet
