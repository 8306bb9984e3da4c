#include "backend/nft/damage.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "backend/nft/affinity.h"

namespace shunt::backend::nft {
namespace {

using Of = ForeignChange::Of;

const Set* find_set(const Program& program, const std::string& name) {
  const auto found = std::ranges::find(program.sets, name, &Set::name);
  return found == program.sets.end() ? nullptr : &*found;
}

bool has_chain(const Program& program, const std::string& name) {
  return std::ranges::find(program.chains, name, &Chain::name) != program.chains.end();
}

const char* word(Of of) {
  switch (of) {
    case Of::Table:
      return "table";
    case Of::Set:
      return "set";
    case Of::Chain:
      return "chain";
    case Of::Rule:
      return "rule";
    case Of::Element:
      return "element";
  }
  return "";
}

bool holds_frontends(const Set& set, bool node_ports) {
  return !set.dynamic() && !set.interval && set.holds != Set::Holds::Endpoints &&
         set.id != SetId::AffinityLocal &&
         set.shape == (node_ports ? KeyShape::NodePort : KeyShape::Frontend);
}

}  // namespace

bool Damage::any() const {
  return everything || rules || !frontends.empty() || !cluster_ips.empty() ||
         !affinity_local.empty() || !intervals.empty();
}

bool Damage::add_element(const Program& program, const ForeignChange& change) {
  const Set* set = find_set(program, change.name);
  if (set == nullptr || set->dynamic()) {
    return false;  // what packets remember is theirs
  }
  const net::Family family = program.family;
  const KeyBytes& key = change.key;
  if (set->interval) {
    intervals.insert(set->id);
    return true;
  }
  bool understood = false;
  if (set->id == SetId::ClusterIps) {
    if (const auto ip = decode_ip(family, key)) {
      cluster_ips.insert(*ip);
      understood = true;
    }
  } else if (set->holds == Set::Holds::Endpoints) {
    if (const auto slot = decode_slot(family, set->shape, key)) {
      frontends[slot->frontend].insert(slot->slot);
      understood = true;
    }
  } else if (const auto frontend = decode_frontend(family, set->shape, key)) {
    if (set->id == SetId::AffinityLocal) {
      affinity_local.insert(*frontend);
    } else {
      frontends.try_emplace(*frontend);
    }
    understood = true;
  }
  everything = everything || !understood;  // nothing that we would write: only reading finds it
  return true;
}

bool Damage::add(const Program& program, const ForeignChange& change) {
  if (change.of == Of::Element) {
    return add_element(program, change);
  }
  const bool of_chains = change.of == Of::Chain || change.of == Of::Rule;
  if (of_chains && has_chain(program, change.name)) {
    rules = true;
  } else if (of_chains && !is_affinity_chain(change.name)) {
    rules = true;
    chains.insert(change.name);
  } else {
    everything = true;
  }
  return true;
}

std::vector<Drift> Damage::add(const Program& program, const ForeignChanges& seen) {
  std::map<std::tuple<Of, bool, std::string>, std::size_t> counts;
  for (const ForeignChange& change : seen.changes) {
    if (add(program, change)) {
      ++counts[{change.of, change.removed, change.name}];
    }
  }
  std::vector<Drift> out;
  if (seen.lost) {
    everything = true;
    rules = true;
    out.push_back({"unknown", "", false, 1, seen.author});
  }
  everything = everything || frontends.size() > kMostFrontends;
  for (const auto& [what, count] : counts) {
    const auto& [of, removed, name] = what;
    out.push_back({word(of), name, removed, count, seen.author});
  }
  return out;
}

namespace {

// The frontends of one kind that are damaged: which elements of them are there.
Result<> look_up(
    Transport& transport,
    const Program& program,
    const Damage& damage,
    bool node_ports,
    const KernelMirror& mirror,
    KernelMirror& seen) {
  std::vector<KeyBytes> keys;
  for (const auto& [key, slots] : damage.frontends) {
    if (desired::is_node_port(key) == node_ports) {
      keys.push_back(encode(key));
    }
  }
  if (keys.empty()) {
    return {};
  }
  const KeyRuns members = each_alone(std::move(keys));
  const auto find = [&](const Set& set, const KeyRuns& runs) {
    return transport.find_elements(
        program.family, set, runs, [&](Element&& element) { seen.adopt(set, element); });
  };
  for (const Set& set : program.sets) {
    if (holds_frontends(set, node_ports)) {
      if (auto done = find(set, members); !done) {
        return done;
      }
    }
  }
  for (const bool local : {false, true}) {
    const Place place = place_of(node_ports, local);
    std::vector<KeyBytes> slots;
    for (const auto& [key, named] : damage.frontends) {
      if (desired::is_node_port(key) != node_ports) {
        continue;
      }
      const auto most = static_cast<std::uint32_t>(
          std::max(mirror.slots_of(key, place), seen.slots_of(key, place)));
      for (std::uint32_t slot = 0; slot < most; ++slot) {
        slots.push_back(encode_slot(key, slot));
      }
      for (const std::uint32_t slot : named) {
        if (slot >= most) {
          slots.push_back(encode_slot(key, slot));
        }
      }
    }
    const Set& set = set_in(program, slot_map(place));
    if (auto done = find(set, each_alone(std::move(slots))); !done) {
      return done;
    }
  }
  return {};
}

// Which of these are in a set of single keys.
template <typename Key, typename Believe>
Result<> look_up(
    Transport& transport,
    const Program& program,
    SetId id,
    const std::set<Key>& suspects,
    const Believe& believe) {
  const Set& set = set_in(program, id);
  for (const Key& key : suspects) {
    bool there = false;
    auto done = transport.find_elements(
        program.family, set, each_alone({encode(key)}), [&](Element&&) { there = true; });
    if (!done) {
      return done;
    }
    believe(key, there);
  }
  return {};
}

}  // namespace

Result<> examine(
    Transport& transport, const Program& program, const Damage& damage, KernelMirror& mirror) {
  KernelMirror seen(program.family);
  for (const bool node_ports : {false, true}) {
    if (auto done = look_up(transport, program, damage, node_ports, mirror, seen); !done) {
      return done;
    }
  }
  (void)seen.finish_adoption(Clock::now());  // gaps are what we came for
  for (const auto& [key, slots] : damage.frontends) {
    mirror.believe(key, seen);
  }
  auto done = look_up(
      transport,
      program,
      SetId::ClusterIps,
      damage.cluster_ips,
      [&](const net::IpAddress& ip, bool there) { mirror.believe_cluster_ip(ip, there); });
  if (!done) {
    return done;
  }
  return look_up(
      transport,
      program,
      SetId::AffinityLocal,
      damage.affinity_local,
      [&](const desired::FrontendKey& key, bool there) {
        mirror.believe_affinity_local(key, there);
      });
}

}  // namespace shunt::backend::nft
