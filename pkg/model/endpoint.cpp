#include "model/endpoint.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace shunt::model {
namespace {

using SlicePtr = std::shared_ptr<const kube::EndpointSlice>;

// One endpoint of one slice under one of the slice's ports.
struct Candidate {
  net::SocketAddress address;
  const kube::SliceEndpoint* endpoint;
  std::size_t slice;  // its place in the order of names
};

using PortName = std::pair<std::string, net::Protocol>;
using Candidates = std::map<PortName, std::vector<Candidate>>;

// Slices that speak about this family, in the order of their names.
std::vector<const kube::EndpointSlice*> relevant(
    std::span<const SlicePtr> slices, net::Family family) {
  std::vector<const kube::EndpointSlice*> relevant;
  relevant.reserve(slices.size());
  for (const SlicePtr& slice : slices) {
    if (slice && slice->address_type == net::to_string(family)) {
      relevant.push_back(slice.get());
    }
  }
  std::sort(relevant.begin(), relevant.end(), [](const auto* a, const auto* b) {
    return a->meta.key < b->meta.key;
  });
  return relevant;
}

struct UsablePort {
  PortName name;
  net::Port number;
};

// The ports of a slice that can be used; the others go to `issues`.
std::vector<UsablePort> usable_ports(
    const kube::EndpointSlice& slice, std::vector<std::string>& issues) {
  std::vector<UsablePort> ports;
  const auto issue = [&](const std::string& what) {
    issues.push_back("slice " + kube::to_string(slice.meta.key) + ": " + what);
  };
  for (const kube::SlicePort& port : slice.ports) {
    if (!port.name) {
      issue("a port has no name");
      continue;
    }
    const auto protocol =
        port.protocol.empty() ? net::Protocol::Tcp : net::parse_protocol(port.protocol);
    if (!protocol) {
      issue("port \"" + *port.name + "\": unknown protocol \"" + port.protocol + "\"");
      continue;
    }
    if (port.port < 1 || port.port > 65535) {
      issue("port \"" + *port.name + "\": number " + std::to_string(port.port) + " is no port");
      continue;
    }
    ports.push_back({{*port.name, *protocol}, net::Port{static_cast<std::uint16_t>(port.port)}});
  }
  return ports;
}

// The endpoints of a slice that have an address of the family; the others are counted in `issues`.
std::vector<const kube::SliceEndpoint*> usable_endpoints(
    const kube::EndpointSlice& slice, net::Family family, std::vector<std::string>& issues) {
  std::vector<const kube::SliceEndpoint*> endpoints;
  endpoints.reserve(slice.endpoints.size());
  for (const kube::SliceEndpoint& endpoint : slice.endpoints) {
    if (endpoint.address && endpoint.address->family == family) {
      endpoints.push_back(&endpoint);
    }
  }
  const std::size_t bad = slice.endpoints.size() - endpoints.size();
  if (bad > 0) {
    issues.push_back(
        "slice " + kube::to_string(slice.meta.key) + ": " + std::to_string(bad) +
        " endpoint(s) without an address of the slice's family");
  }
  return endpoints;
}

Candidates collect(
    const std::vector<const kube::EndpointSlice*>& slices,
    net::Family family,
    std::vector<std::string>& issues) {
  Candidates candidates;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto ports = usable_ports(*slices[i], issues);
    const auto endpoints = usable_endpoints(*slices[i], family, issues);
    for (const UsablePort& port : ports) {
      auto& of_port = candidates[port.name];
      for (const kube::SliceEndpoint* endpoint : endpoints) {
        of_port.push_back({{*endpoint->address, port.number}, endpoint, i});
      }
    }
  }
  return candidates;
}

// Larger is better. An address that lives is never hidden by its terminating past (IP reuse).
auto liveliness(const Candidate& candidate) {
  const kube::SliceEndpoint& e = *candidate.endpoint;
  return std::tuple(!e.terminating, e.ready, e.serving);
}

// Which of several entries for one address counts; `first` to `last` are in the order of slices.
//
// Within a slice this is kube-proxy's rule: the last entry that does not terminate, else the first.
// Between slices kube-proxy leaves it to the order of a hash map. We take the liveliest, so that a
// pod that is listed twice while it moves is used as soon as one slice says that it can be; the
// slice's name settles a tie.
template <typename It>
It counting_entry(It first, It last) {
  It best = last;
  while (first != last) {
    It of_slice = first;
    It next = first + 1;
    for (; next != last && next->slice == first->slice; ++next) {
      if (!next->endpoint->terminating) {
        of_slice = next;
      }
    }
    if (best == last || liveliness(*of_slice) > liveliness(*best)) {
      best = of_slice;
    }
    first = next;
  }
  return best;
}

std::vector<std::string> as_set(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Endpoint resolved(
    const Candidate& candidate, std::string_view node_name, const EndpointWeights* weights) {
  const kube::SliceEndpoint& from = *candidate.endpoint;
  Endpoint endpoint;
  endpoint.address = candidate.address;
  endpoint.local = !node_name.empty() && from.node_name == node_name;
  endpoint.ready = from.ready;
  endpoint.serving = from.serving;
  endpoint.terminating = from.terminating;
  endpoint.zone_hints = as_set(from.zone_hints);
  endpoint.node_hints = as_set(from.node_hints);
  if (weights != nullptr) {
    endpoint.weight = weights->of(endpoint.address.ip, from.node_name, endpoint.local, from.zone);
  }
  return endpoint;
}

std::vector<Endpoint> merged(
    std::vector<Candidate> candidates, std::string_view node_name, const EndpointWeights* weights) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.address < b.address;
  });
  std::vector<Endpoint> endpoints;
  endpoints.reserve(candidates.size());
  for (auto it = candidates.cbegin(); it != candidates.cend();) {
    const auto end = std::find_if(
        it, candidates.cend(), [&](const Candidate& c) { return c.address != it->address; });
    endpoints.push_back(resolved(*counting_entry(it, end), node_name, weights));
    it = end;
  }
  return endpoints;
}

}  // namespace

const PortEndpoints* find(
    const ServiceEndpoints& endpoints, std::string_view port, net::Protocol protocol) {
  const auto key = [](const PortEndpoints& p) {
    return std::pair(std::string_view(p.port), p.protocol);
  };
  const auto wanted = std::pair(port, protocol);
  const auto found = std::lower_bound(
      endpoints.ports.begin(),
      endpoints.ports.end(),
      wanted,
      [&](const PortEndpoints& p, const auto& value) { return key(p) < value; });
  return found != endpoints.ports.end() && key(*found) == wanted ? &*found : nullptr;
}

ServiceEndpoints merge_slices(
    std::span<const SlicePtr> slices,
    net::Family family,
    std::string_view node_name,
    const EndpointWeights* weights) {
  ServiceEndpoints result;
  Candidates candidates = collect(relevant(slices, family), family, result.issues);
  result.ports.reserve(candidates.size());
  for (auto& [name, of_port] : candidates) {
    if (!of_port.empty()) {
      result.ports.push_back(
          {name.first, name.second, merged(std::move(of_port), node_name, weights)});
    }
  }
  return result;
}

std::size_t local_ready_addresses(const ServiceEndpoints& endpoints) {
  std::vector<net::IpAddress> addresses;
  for (const PortEndpoints& port : endpoints.ports) {
    for (const Endpoint& endpoint : port.endpoints) {
      if (endpoint.local && endpoint.ready) {
        addresses.push_back(endpoint.address.ip);
      }
    }
  }
  std::sort(addresses.begin(), addresses.end());
  return static_cast<std::size_t>(
      std::unique(addresses.begin(), addresses.end()) - addresses.begin());
}

}  // namespace shunt::model
