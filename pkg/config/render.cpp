#include "config/render.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/fields.h"

namespace shunt::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOwnSection = "kubeShunt";

Json to_json(const std::vector<VerbosityOfFiles>& modules) {
  Json list = Json::array();
  for (const VerbosityOfFiles& module : modules) {
    list.push_back({{"filePattern", module.pattern}, {"verbosity", module.verbosity}});
  }
  return list;
}

Json to_json(const Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Nanos>) {
          return go_duration(held);
        } else if constexpr (std::is_same_v<Held, std::vector<VerbosityOfFiles>>) {
          return to_json(held);
        } else if constexpr (std::is_same_v<Held, Gates>) {
          Json gates = Json::object();
          for (const auto& [name, on] : held) {
            gates[name] = on;
          }
          return gates;
        } else if constexpr (std::is_same_v<Held, double>) {
          // As Go prints it: no ".0".
          const bool whole = held == std::floor(held) && std::abs(held) < 1e15;
          return whole ? Json(static_cast<std::int64_t>(held)) : Json(held);
        } else {
          return held;
        }
      },
      value);
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Fields of the file as a tree, in the order of the table.
Json tree(const Settings& settings) {
  Json root{{"apiVersion", "kubeproxy.config.k8s.io/v1alpha1"}, {"kind", "KubeProxyConfiguration"}};
  for (const Field& field : fields()) {
    if (!field.in_file()) {
      continue;
    }
    Json* place = &root;
    std::string_view rest = field.path;
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      place = &(*place)[std::string(rest.substr(0, dot))];
      rest.remove_prefix(dot + 1);
    }
    const auto found = settings.find(field.path);
    (*place)[std::string(rest)] = found == settings.end() ? Json() : to_json(found->second);
  }
  return root;
}

// As deep as the table. JSON's values are YAML's, too.
void append_yaml(std::string& out, const Json& map, std::size_t indent) {
  for (const auto& [name, value] : map.items()) {
    out.append(indent, ' ');
    out += name;
    if (value.is_object() && !value.empty()) {
      out += ":\n";
      append_yaml(out, value, indent + 2);
    } else {
      out += ": ";
      out += text_of(value);
      out += '\n';
    }
  }
}

}  // namespace

std::string as_yaml(const Settings& settings) {
  Json root = tree(settings);
  Json gates;
  gates.swap(root["featureGates"]);
  std::string out;
  append_yaml(out, root, 0);
  // The names of gates are the user's.
  const std::string null = "featureGates: null";
  return out.replace(out.find(null), null.size(), "featureGates: " + text_of(gates));
}

std::string as_configz(const Settings& settings) {
  Json root = tree(settings);
  const std::string own_name(kOwnSection);
  Json own = root[own_name];
  root.erase(own_name);
  return text_of(Json{{"kubeproxy.config.k8s.io", std::move(root)}, {own_name, std::move(own)}});
}

std::map<std::string, std::string> as_texts(const Settings& settings) {
  std::map<std::string, std::string> out;
  for (const auto& [path, value] : settings) {
    out.emplace(path, text_of(to_json(value)));
  }
  return out;
}

}  // namespace shunt::config
