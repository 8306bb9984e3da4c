#include "packet/flow_runner.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "netns/sockets.h"

namespace shunt::conformance::packet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The lab is one machine: a packet is where it goes within microseconds. These leave room for a
// busy one.
constexpr milliseconds kPatience{1500};  // for what should happen
constexpr milliseconds kSilence{250};    // for what should not
constexpr milliseconds kLook{100};       // at most, between two looks
constexpr std::size_t kBatch = 8;

// Below the range that the kernel chooses ports from (lab.cpp), so the two never meet.
constexpr std::uint16_t kFirstPort = 2000;
constexpr std::uint16_t kLastPort = 9999;

bool expects_silence(const Flow& flow) {
  return flow.expect.verdict == Verdict::Drop || flow.expect.verdict == Verdict::NotSeen;
}

// Where news of a refusal may come from.
std::vector<int> undecided(
    const std::vector<Attempt>& attempts, const std::vector<Observation>& observations) {
  std::vector<int> descriptors;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    if (!observations[i].decided()) {
      descriptors.push_back(attempts[i].fd.get());
    }
  }
  return descriptors;
}

milliseconds until(Clock::time_point deadline) {
  return std::min(kLook, std::chrono::ceil<milliseconds>(deadline - Clock::now()));
}

void take(
    const std::vector<Sighting>& sightings,
    const std::vector<Attempt>& attempts,
    std::vector<Observation>& observations) {
  for (const Sighting& sighting : sightings) {
    for (std::size_t i = 0; sighting.first && i < attempts.size(); ++i) {
      if (attempts[i].id == sighting.id && !observations[i].seen) {
        observations[i].seen = sighting;
      }
    }
  }
}

}  // namespace

FlowRunner::FlowRunner(const lab::Lab& lab, const std::vector<std::string>& places, int patience)
    : lab_(&lab),
      sightings_(lab, places),
      patience_(patience),
      next_id_(0x5a000000),
      next_port_(kFirstPort) {}

const lab::Netns& FlowRunner::place_of(const Flow& flow) const {
  switch (flow.place) {
    case Place::PodLocal:
      return lab_->place("pods");
    case Place::PodRemote:
    case Place::External:
      return lab_->outside();
    case Place::Node:
    case Place::Localhost:
      break;
  }
  return lab_->node();
}

std::vector<Attempt> FlowRunner::send(const Flow& flow, std::size_t count) {
  return place_of(flow).run([&] {
    std::vector<Attempt> attempts;
    for (std::size_t i = 0; i < count; ++i) {
      net::SocketAddress from = flow.from;
      if (from.port == net::Port{0}) {
        next_port_ =
            next_port_ == kLastPort ? kFirstPort : static_cast<std::uint16_t>(next_port_ + 1);
        from.port = net::Port{next_port_};
      }
      attempts.push_back(send_first_packet(flow.protocol, from, flow.to, next_id_++));
    }
    return attempts;
  });
}

// Until every attempt has come out or been refused. A refusal may overtake a sighting in our eyes,
// not in the kernel: one more look at the end settles it.
std::vector<Observation> FlowRunner::observe(const Flow& flow, std::vector<Attempt>& attempts) {
  std::vector<Observation> observations(attempts.size());
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    observations[i].sent_from = attempts[i].from;
  }
  const Clock::time_point deadline =
      Clock::now() + patience_ * (expects_silence(flow) ? kSilence : kPatience);
  std::vector<Sighting> sightings = sightings_.drain();
  while (true) {
    take(sightings, attempts, observations);
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      look_for_error(attempts[i]);
      observations[i].error = attempts[i].error;
    }
    const bool all_decided =
        std::ranges::all_of(observations, [](const Observation& o) { return o.decided(); });
    if (all_decided || Clock::now() > deadline) {
      break;
    }
    sightings = sightings_.wait(until(deadline), undecided(attempts, observations));
  }
  take(sightings_.drain(), attempts, observations);
  return observations;
}

std::optional<std::string> FlowRunner::judge_batch(
    const Flow& flow, const std::vector<Observation>& batch, FlowRecord& record) const {
  for (const Observation& observation : batch) {
    if (auto problem = problem_of(flow, observation)) {
      return problem;
    }
    if (auto problem = record.add(observation)) {
      return problem;
    }
  }
  if (flow.same_endpoint_as.empty()) {
    return std::nullopt;
  }
  const auto other = reached_.find(flow.same_endpoint_as);
  if (other != reached_.end() && record.reached() != other->second) {
    return "expected the endpoint that \"" + flow.same_endpoint_as + "\" reached: the packet " +
           describe(batch.front());
  }
  return std::nullopt;
}

std::optional<std::string> FlowRunner::run_connections(const Flow& flow) {
  FlowRecord record(flow);
  // A fixed source port is one connection: a second one would be the same to the kernel's tracking.
  const bool fixed_port = flow.from.port != net::Port{0};
  const std::size_t wanted = fixed_port ? 1 : record.wanted_connections();
  const std::size_t batch_size = flow.gap.count() > 0 || fixed_port ? 1 : kBatch;
  for (std::size_t made = 0; made < wanted && !record.satisfied();) {
    if (made > 0 && flow.gap.count() > 0) {
      std::this_thread::sleep_for(flow.gap);
    }
    std::vector<Attempt> attempts = send(flow, std::min(batch_size, wanted - made));
    made += attempts.size();
    if (auto problem = judge_batch(flow, observe(flow, attempts), record)) {
      return problem;
    }
  }
  reached_[flow.name] = record.reached();
  return fixed_port ? std::nullopt : record.missing();
}

// One socket for the whole case, as a client that never stops: each of its packets is judged.
std::optional<std::string> FlowRunner::run_kept_socket(const Flow& flow) {
  FlowRecord record(flow);
  const KeptKey key{flow.from, flow.to};
  if (!kept_.contains(key)) {
    kept_.emplace(key, std::move(send(flow, 1).front()));
  } else {
    send_again(kept_.at(key), next_id_++);
  }
  for (int packet = 0; packet < 3; ++packet) {
    std::vector<Attempt> attempts;
    attempts.push_back(std::move(kept_.at(key)));
    const std::vector<Observation> batch = observe(flow, attempts);
    kept_.at(key) = std::move(attempts.front());
    if (auto problem = judge_batch(flow, batch, record)) {
      return problem;
    }
    send_again(kept_.at(key), next_id_++);
  }
  return std::nullopt;
}

// A real connection to the only endpoint, with somebody listening there.
std::optional<std::string> FlowRunner::run_held(const Flow& flow) {
  const net::SocketAddress endpoint = flow.expect.endpoints.at(0);
  const UniqueFd listener =
      lab_->outside().run([&] { return lab::open_listener(flow.protocol, endpoint); });
  Held held{std::move(send(flow, 1).front()), {}};
  const Clock::time_point deadline = Clock::now() + patience_ * kPatience;
  while (!held.answer && Clock::now() < deadline) {
    for (const Sighting& sighting : sightings_.wait(until(deadline))) {
      const bool answer = sighting.tcp_flags == (kTcpSyn | kTcpAck) &&
                          sighting.to == held.attempt.from && sighting.from == flow.to;
      held.answer = answer ? std::optional(sighting) : held.answer;
    }
  }
  if (!held.answer) {
    return "expected a connection, but " + net::to_string(endpoint) + " was not heard of";
  }
  held_.emplace(flow.name, std::move(held));
  return run_connections(flow);
}

std::optional<std::string> FlowRunner::run_stray_segment(const Flow& flow) {
  const auto held = held_.find(flow.stray_segment_after);
  if (held == held_.end()) {
    return "no connection \"" + flow.stray_segment_after + "\" to follow";
  }
  const Held& connection = held->second;
  sightings_.drain();
  lab_->outside().run([&] {
    constexpr std::uint32_t kFarAway = 0x40000000;
    send_stray_segment(
        flow.from,
        connection.attempt.from,
        connection.answer->id + kFarAway,
        connection.attempt.id + 1);
  });
  const Clock::time_point deadline = Clock::now() + patience_ * kSilence;
  while (Clock::now() < deadline) {
    for (const Sighting& sighting : sightings_.wait(until(deadline))) {
      if (sighting.place == "pods" && sighting.from == flow.from) {
        return "the client received a segment from " + net::to_string(sighting.from);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> FlowRunner::run(const Flow& flow, bool keeps_sending, bool holds) {
  sightings_.drain();
  if (!flow.stray_segment_after.empty()) {
    return run_stray_segment(flow);
  }
  if (holds) {
    return run_held(flow);
  }
  if (flow.assign) {
    lab_->add_node_address(flow.from.ip);
  }
  const bool kept = flow.protocol == net::Protocol::Udp &&
                    (keeps_sending || kept_.contains({flow.from, flow.to}));
  auto problem = kept ? run_kept_socket(flow) : run_connections(flow);
  if (flow.assign) {
    lab_->remove_node_address(flow.from.ip);
  }
  return problem;
}

}  // namespace shunt::conformance::packet
