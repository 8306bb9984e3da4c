#include "apiserver/exec_plugin.h"

#include <nlohmann/json.hpp>

#include "apiserver/base64.h"
#include "base/subprocess.h"
#include "kube/timestamp.h"

namespace shunt::apiserver {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kPluginTimeout{60};

// "" when absent; nothing when it is no string.
std::optional<std::string> text_field(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    return "";
  }
  return found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

json cluster_info(const ExecPlugin& plugin, const Access& access, const std::string& ca) {
  json cluster = {{"server", to_string(access.server)}};
  if (!access.tls_server_name.empty()) {
    cluster["tls-server-name"] = access.tls_server_name;
  }
  if (!ca.empty()) {
    cluster["certificate-authority-data"] = base64_encode(ca);
  }
  const auto config = json::parse(plugin.cluster_config_json, nullptr, /*allow_exceptions=*/false);
  cluster["config"] = config.is_discarded() ? json(nullptr) : config;
  return cluster;
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, const Access& access, const std::string& ca) {
  json spec = {{"interactive", false}};
  if (plugin.provide_cluster_info) {
    spec["cluster"] = cluster_info(plugin, access, ca);
  }
  const json info = {
      {"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}};
  return info.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<ExecCredential> parse_exec_credential(
    const std::string& text, const std::string& api_version) {
  const auto refuse = [](std::string_view why) {
    return fail(Errc::Invalid, "the exec plugin's answer " + std::string(why));
  };
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || text_field(document, "kind") != "ExecCredential") {
    return refuse("is not an ExecCredential");
  }
  if (text_field(document, "apiVersion") != api_version) {
    return refuse("has another apiVersion than " + api_version);
  }
  const auto status = document.find("status");
  if (status == document.end() || !status->is_object()) {
    return refuse("has no status");
  }
  const auto token = text_field(*status, "token");
  const auto certificate = text_field(*status, "clientCertificateData");
  const auto key = text_field(*status, "clientKeyData");
  const auto expires = text_field(*status, "expirationTimestamp");
  if (!token || !certificate || !key || !expires) {
    return refuse("has a status field that is not a string");
  }
  if (certificate->empty() != key->empty()) {
    return refuse("must have both clientCertificateData and clientKeyData, or neither");
  }
  if (token->empty() && certificate->empty()) {
    return refuse("holds neither a token nor a client certificate");
  }
  ExecCredential out{*token, *certificate, *key, std::nullopt};
  if (!expires->empty()) {
    const auto time = kube::parse_rfc3339(*expires);
    if (!time) {
      return refuse("has an expirationTimestamp that is not a time");
    }
    out.expires = time->seconds;
  }
  return out;
}

Result<ExecCredential> run_exec_plugin(const Access& access, const std::string& ca, int stop_fd) {
  const ExecPlugin& plugin = *access.exec;
  Command command;
  command.argv.push_back(plugin.command);
  command.argv.insert(command.argv.end(), plugin.args.begin(), plugin.args.end());
  command.env = plugin.env;
  command.env.emplace_back("KUBERNETES_EXEC_INFO", exec_info(plugin, access, ca));
  command.timeout = kPluginTimeout;
  command.stop_fd = stop_fd;
  auto output = run(command);
  if (!output) {
    if (output.error().code == Errc::NotFound && !plugin.install_hint.empty()) {
      output.error().what += "; " + plugin.install_hint;
    }
    return fail("exec plugin", output.error());
  }
  if (output->exit_code != 0) {
    // What it wrote stays out of the message, diagnostics included: plugins print what they get.
    return fail(
        Errc::Again,
        "exec plugin " + plugin.command + " failed with exit code " +
            std::to_string(output->exit_code));
  }
  return parse_exec_credential(output->out, plugin.api_version);
}

}  // namespace shunt::apiserver
