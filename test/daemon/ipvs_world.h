// A world whose daemon runs in mode ipvs, or in whichever mode its configuration says by now.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "netns/ipvs_support.h"

// Most kernels have it as a module, some machines do not; a test that cannot have it says so.
#define SHUNT_NEEDS_IPVS()                                \
  SHUNT_NEEDS_ROOT();                                     \
  if (const auto why_not = ::shunt::lab::why_no_ipvs()) { \
    SKIP(*why_not);                                       \
  }                                                       \
  static_assert(true)

namespace shunt::test {

// Takes the place of the file at once, as a ConfigMap's swap does.
inline void write_mode(
    const World& world,
    const std::string& mode,
    const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json config{
      {"apiVersion", "kubeproxy.config.k8s.io/v1alpha1"},
      {"kind", "KubeProxyConfiguration"},
      {"mode", mode},
      {"clusterCIDR", "10.64.0.0/14,fd64::/48"},
      {"nodePortAddresses", {"primary"}},
      {"conntrack", {{"maxPerCore", 0}}}};
  config.update(more);
  const std::string path = world.directory() + "/config.yaml";
  std::ofstream(path + ".new") << config;
  std::filesystem::rename(path + ".new", path);
}

// No daemon yet: first write_mode().
inline World::Options configured_by_file(lab::LabSpec spec = World::shared_pods()) {
  World::Options options;
  options.lab = std::move(spec);
  options.config_file = "config.yaml";
  options.start_daemon = false;
  return options;
}

// Starts with these objects in the kernel.
inline void start_in_mode(
    World& world, const std::string& mode, const nlohmann::json& more = nlohmann::json::object()) {
  write_mode(world, mode, more);
  world.start_daemon();
  world.settle(std::chrono::seconds(120));
}

// What ipvsadm prints of the node's table, one command a line.
inline std::string saved_servers(const World& world) { return world.on_node("ipvsadm -Sn"); }

inline bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace shunt::test
