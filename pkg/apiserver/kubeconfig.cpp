// The one home of yaml-cpp in this folder; what it throws ends here.
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "apiserver/access.h"
#include "apiserver/base64.h"

namespace shunt::apiserver {
namespace {

constexpr char kExecExtension[] = "client.authentication.k8s.io/exec";

// Carried to parse_kubeconfig; a hand of helpers that each return a Result would hide the table.
struct Refused {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw Refused{std::move(why)}; }

class Section {
 public:
  Section(const YAML::Node& node, std::string name) : node_(node), name_(std::move(name)) {
    if (node_ && !node_.IsNull() && !node_.IsMap()) {
      refuse(name_ + " must be a mapping");
    }
  }
  bool has(const char* key) const {
    return node_ && node_.IsMap() && node_[key] && !node_[key].IsNull();
  }
  YAML::Node node(const char* key) const { return has(key) ? node_[key] : YAML::Node(); }
  Section section(const char* key) const { return {node(key), name_ + "." + key}; }
  const std::string& name() const { return name_; }

  // A scalar. The value stays out of every message: it may be a secret.
  std::string text(const char* key) const {
    if (!has(key)) {
      return "";
    }
    if (!node_[key].IsScalar()) {
      refuse(name_ + "." + key + " must be a string");
    }
    return node_[key].Scalar();
  }
  bool flag(const char* key) const {
    const std::string value = text(key);
    if (!value.empty() && value != "true" && value != "false") {
      refuse(name_ + "." + key + " must be true or false");
    }
    return value == "true";
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> out;
    if (!has(key)) {
      return out;
    }
    if (!node_[key].IsSequence()) {
      refuse(name_ + "." + key + " must be a list");
    }
    for (const YAML::Node& item : node_[key]) {
      if (!item.IsScalar()) {
        refuse(name_ + "." + key + " must be a list of strings");
      }
      out.push_back(item.Scalar());
    }
    return out;
  }

 private:
  YAML::Node node_;
  std::string name_;
};

// The entry of `list` ("clusters") that is called `wanted`; the first one, as client-go takes it.
Section named_entry(
    const Section& root, const char* list, const char* body, const std::string& wanted) {
  const std::string name = std::string(body) + " \"" + wanted + "\"";
  for (const YAML::Node& item : root.node(list)) {
    const Section entry(item, list);
    if (entry.text("name") == wanted) {
      return {entry.node(body), name};
    }
  }
  refuse(name + " is named but not defined");
}

std::string absolute(const std::string& path, const std::string& directory) {
  return path.empty() || path.starts_with('/') ? path : directory + "/" + path;
}

// `key` names a file, `key`-data holds the same thing inline.
PemSource pem(const Section& section, const std::string& key, const std::string& directory) {
  const std::string data_key = key + "-data";
  PemSource out;
  out.file = absolute(section.text(key.c_str()), directory);
  const std::string encoded = section.text(data_key.c_str());
  if (!out.file.empty() && !encoded.empty()) {
    refuse(section.name() + " has both " + key + " and " + data_key);
  }
  if (!encoded.empty()) {
    const auto decoded = base64_decode(encoded);
    if (!decoded || decoded->empty()) {
      refuse(section.name() + "." + data_key + " is not base64");
    }
    out.data = *decoded;
  }
  return out;
}

nlohmann::json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    auto out = nlohmann::json::object();
    for (const auto& entry : node) {
      out[entry.first.Scalar()] = to_json(entry.second);
    }
    return out;
  }
  if (node.IsSequence()) {
    auto out = nlohmann::json::array();
    for (const YAML::Node& item : node) {
      out.push_back(to_json(item));
    }
    return out;
  }
  if (!node.IsScalar()) {
    return nullptr;
  }
  // "!" marks a quoted scalar, which is a string whatever it looks like.
  if (node.Tag() != "!") {
    auto value = nlohmann::json::parse(node.Scalar(), nullptr, /*allow_exceptions=*/false);
    if (value.is_number() || value.is_boolean()) {
      return value;
    }
  }
  return node.Scalar();
}

void read_cluster(
    const Section& cluster,
    const std::string& directory,
    const std::string& master,
    Access& access) {
  if (cluster.flag("insecure-skip-tls-verify")) {
    refuse(cluster.name() + " sets insecure-skip-tls-verify: the server is always verified here");
  }
  if (!cluster.text("proxy-url").empty()) {
    refuse(cluster.name() + " sets proxy-url: proxies are not supported");
  }
  access.disable_compression = cluster.flag("disable-compression");
  if (master.empty()) {
    const std::string server = cluster.text("server");
    if (server.empty()) {
      refuse(cluster.name() + " has no server");
    }
    auto url = parse_server_url(server);
    if (!url) {
      refuse(cluster.name() + ": " + url.error().what);
    }
    access.server = std::move(*url);
    access.tls_server_name = cluster.text("tls-server-name");
  }
  access.ca = pem(cluster, "certificate-authority", directory);
}

std::string cluster_config(const Section& cluster) {
  for (const YAML::Node& item : cluster.node("extensions")) {
    const Section extension(item, "extensions");
    if (extension.text("name") == kExecExtension && extension.has("extension")) {
      return to_json(extension.node("extension")).dump();
    }
  }
  return "";
}

ExecPlugin read_exec(const Section& exec, const Section& cluster, const std::string& directory) {
  ExecPlugin out;
  out.api_version = exec.text("apiVersion");
  const bool v1 = out.api_version == "client.authentication.k8s.io/v1";
  if (!v1 && out.api_version != "client.authentication.k8s.io/v1beta1") {
    refuse(exec.name() + ".apiVersion must be client.authentication.k8s.io/v1 or v1beta1");
  }
  out.command = exec.text("command");
  if (out.command.empty()) {
    refuse(exec.name() + ".command is missing");
  }
  if (out.command.find('/') != std::string::npos) {
    out.command = absolute(out.command, directory);
  }
  out.args = exec.texts("args");
  for (const YAML::Node& item : exec.node("env")) {
    const Section variable(item, exec.name() + ".env");
    if (variable.text("name").empty()) {
      refuse(exec.name() + ".env has an entry without a name");
    }
    out.env.emplace_back(variable.text("name"), variable.text("value"));
  }
  const std::string mode = exec.text("interactiveMode");
  if (mode == "Always") {
    refuse(exec.name() + ".interactiveMode is Always: a node agent has no terminal");
  }
  if (mode != "Never" && mode != "IfAvailable" && !(mode.empty() && !v1)) {
    refuse(exec.name() + ".interactiveMode must be Never, IfAvailable or Always");
  }
  out.install_hint = exec.text("installHint");
  out.provide_cluster_info = exec.flag("provideClusterInfo");
  if (out.provide_cluster_info) {
    out.cluster_config_json = cluster_config(cluster);
  }
  return out;
}

// `Impersonate-Extra-` keys are percent-encoded where they are no header characters.
std::string escaped_header_key(const std::string& key) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("!#$&'*+-.^_`|~").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

Headers read_impersonation(const Section& user) {
  Headers out;
  const std::string as = user.text("as");
  const std::string uid = user.text("as-uid");
  if (!as.empty()) {
    out.emplace_back("Impersonate-User", as);
  }
  if (!uid.empty()) {
    out.emplace_back("Impersonate-Uid", uid);
  }
  for (const std::string& group : user.texts("as-groups")) {
    out.emplace_back("Impersonate-Group", group);
  }
  const Section extra = user.section("as-user-extra");
  for (const auto& entry : user.node("as-user-extra")) {
    const std::string key = entry.first.Scalar();
    for (const std::string& value : extra.texts(key.c_str())) {
      out.emplace_back("Impersonate-Extra-" + escaped_header_key(key), value);
    }
  }
  if (as.empty() && !out.empty()) {
    refuse(user.name() + " sets as-uid, as-groups or as-user-extra without as");
  }
  return out;
}

void read_user(
    const Section& user, const Section& cluster, const std::string& directory, Access& access) {
  access.token = user.text("token");
  access.token_file = absolute(user.text("tokenFile"), directory);
  access.username = user.text("username");
  access.password = user.text("password");
  if (!access.username.empty() || !access.password.empty()) {
    if (!access.token.empty() || !access.token_file.empty()) {
      refuse(user.name() + " has both a token and a user name");
    }
  }
  access.certificate = pem(user, "client-certificate", directory);
  access.key = pem(user, "client-key", directory);
  if (access.certificate.empty() != access.key.empty()) {
    refuse(user.name() + " must have both a client certificate and its key, or neither");
  }
  access.impersonation = read_impersonation(user);
  if (user.has("auth-provider")) {
    refuse(
        user.name() + (user.has("exec") ? " has both exec and auth-provider"
                                        : " uses auth-provider, which no longer exists: use exec"));
  }
  if (user.has("exec")) {
    access.exec = read_exec(user.section("exec"), cluster, directory);
  }
}

Access read_kubeconfig(
    const YAML::Node& document, const std::string& directory, const std::string& master) {
  Access access;
  if (!master.empty()) {
    auto url = parse_server_url(master);
    if (!url) {
      refuse("master: " + url.error().what);
    }
    access.server = std::move(*url);
  }
  const Section root(document, "kubeconfig");
  const std::string current = root.text("current-context");
  if (current.empty()) {
    if (master.empty()) {
      refuse("it has no current-context");
    }
    return access;
  }
  const Section context = named_entry(root, "contexts", "context", current);
  const std::string cluster_name = context.text("cluster");
  const std::string user_name = context.text("user");
  const bool has_cluster = !cluster_name.empty() || master.empty();
  const Section cluster = has_cluster ? named_entry(root, "clusters", "cluster", cluster_name)
                                      : Section(YAML::Node(), "cluster");
  if (has_cluster) {
    read_cluster(cluster, directory, master, access);
  }
  if (!user_name.empty()) {
    read_user(named_entry(root, "users", "user", user_name), cluster, directory, access);
  }
  return access;
}

}  // namespace

Result<Access> parse_kubeconfig(
    const std::string& text, const std::string& directory, const std::string& master) {
  try {
    return read_kubeconfig(YAML::Load(text), directory, master);
  } catch (const Refused& refused) {
    return fail(Errc::Invalid, refused.why);
  } catch (const YAML::Exception& error) {
    // Only where, not what: the text around an error may be a secret.
    return fail(Errc::Invalid, "not YAML near line " + std::to_string(error.mark.line + 1));
  }
}

Result<Access> kubeconfig_access(const std::string& path, const std::string& master) {
  if (path.empty()) {
    return parse_kubeconfig("", "", master);
  }
  const auto text = read_small_file(path);
  if (!text) {
    return fail("kubeconfig", text.error());
  }
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash);
  auto access = parse_kubeconfig(*text, directory, master);
  if (!access) {
    return fail("kubeconfig " + path, access.error());
  }
  return access;
}

}  // namespace shunt::apiserver
