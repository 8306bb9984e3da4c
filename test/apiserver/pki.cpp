#include "test/apiserver/pki.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/handle.h"
#include "test/apiserver/identifiers.h"

namespace shunt::test_api {
namespace {

using Key = Handle<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Handle<X509, X509_free>;
using File = Handle<std::FILE, std::fclose>;

constexpr long kTenYears = 10L * 365 * 24 * 3600;

struct Pair {
  Key key;
  Certificate certificate;
};

struct Wish {
  std::string common_name;
  std::string organization;
  std::string alt_names;  // "IP:127.0.0.1,DNS:localhost"
  std::string usage;      // "serverAuth", "clientAuth"; "" for the authority
};

Key new_key() { return Key(EVP_EC_gen("P-256")); }

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Handle<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.c_str());
  return value.empty() ||
         X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, bytes, -1, -1, 0) == 1;
}

bool describe(X509* certificate, X509* issuer, const Wish& wish) {
  const bool authority = wish.usage.empty();
  X509_NAME* subject = X509_get_subject_name(certificate);
  return add_name(subject, "O", wish.organization) && add_name(subject, "CN", wish.common_name) &&
         X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
         add_extension(
             certificate,
             issuer,
             NID_basic_constraints,
             authority ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
         add_extension(
             certificate,
             issuer,
             NID_key_usage,
             authority ? "critical,keyCertSign,cRLSign,digitalSignature"
                       : "critical,digitalSignature") &&
         add_extension(certificate, issuer, NID_subject_key_identifier, "hash") &&
         (authority || add_extension(certificate, issuer, NID_ext_key_usage, wish.usage)) &&
         (wish.alt_names.empty() ||
          add_extension(certificate, issuer, NID_subject_alt_name, wish.alt_names));
}

// `authority` null: self-signed.
std::optional<Pair> issue(const Pair* authority, const Wish& wish) {
  Pair pair{new_key(), Certificate(X509_new())};
  if (!pair.key || !pair.certificate) {
    return std::nullopt;
  }
  X509* certificate = pair.certificate.get();
  X509* issuer = authority != nullptr ? authority->certificate.get() : certificate;
  EVP_PKEY* signer = authority != nullptr ? authority->key.get() : pair.key.get();
  const Handle<BIGNUM, BN_free> serial(BN_new());
  const bool made =
      X509_set_version(certificate, 2) == 1 && BN_rand(serial.get(), 127, 0, 0) == 1 &&
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate), kTenYears) != nullptr &&
      X509_set_pubkey(certificate, pair.key.get()) == 1 && describe(certificate, issuer, wish) &&
      X509_sign(certificate, signer, EVP_sha256()) > 0;
  return made ? std::optional(std::move(pair)) : std::nullopt;
}

std::optional<Pair> read_pair(const std::string& stem) {
  const File certificate(std::fopen((stem + ".crt").c_str(), "re"));
  const File key(std::fopen((stem + ".key").c_str(), "re"));
  if (!certificate || !key) {
    return std::nullopt;
  }
  Pair pair{
      Key(PEM_read_PrivateKey(key.get(), nullptr, nullptr, nullptr)),
      Certificate(PEM_read_X509(certificate.get(), nullptr, nullptr, nullptr))};
  return pair.key && pair.certificate ? std::optional(std::move(pair)) : std::nullopt;
}

bool write_pair(const std::string& stem, const Pair& pair) {
  const File certificate(std::fopen((stem + ".crt").c_str(), "we"));
  const File key(std::fopen((stem + ".key").c_str(), "we"));
  return certificate && key && PEM_write_X509(certificate.get(), pair.certificate.get()) == 1 &&
         PEM_write_PrivateKey(key.get(), pair.key.get(), nullptr, nullptr, 0, nullptr, nullptr) ==
             1;
}

Result<Pair> ensure_pair(const std::string& stem, const Pair* authority, const Wish& wish) {
  if (auto pair = read_pair(stem)) {
    return std::move(*pair);
  }
  auto pair = issue(authority, wish);
  if (!pair || !write_pair(stem, *pair)) {
    return fail(Errc::Invalid, "cannot make " + stem + ".crt");
  }
  return std::move(*pair);
}

bool covers(const Pair& server, const std::vector<net::IpAddress>& addresses) {
  for (const net::IpAddress& ip : addresses) {
    if (X509_check_ip(server.certificate.get(), ip.bytes.data(), ip.size(), 0) != 1) {
      return false;
    }
  }
  return true;
}

Result<> ensure_server(
    const std::string& directory,
    const Pair& authority,
    const std::vector<net::IpAddress>& addresses) {
  const std::string stem = directory + "/server";
  std::string names =
      "DNS:localhost,DNS:kubernetes.default.svc,DNS:kubernetes.default,DNS:kubernetes,"
      "IP:127.0.0.1,IP:::1";
  for (const net::IpAddress& ip : addresses) {
    names += ",IP:" + net::to_string(ip);
  }
  const auto old = read_pair(stem);
  if (old && covers(*old, addresses)) {
    return {};
  }
  const auto pair = issue(&authority, {"kube-apiserver", "", names, "serverAuth"});
  if (!pair || !write_pair(stem, *pair)) {
    return fail(Errc::Invalid, "cannot make " + stem + ".crt");
  }
  return {};
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  return file.good();
}

}  // namespace

Result<> ensure_pki(const std::string& directory, const std::vector<net::IpAddress>& addresses) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const auto authority =
      ensure_pair(directory + "/ca", nullptr, {"kube-shunt-test-ca", "", "", ""});
  if (!authority) {
    return tl::unexpected(authority.error());
  }
  const Wish proxy{"system:kube-proxy", "system:node-proxier", "", "clientAuth"};
  const Wish admin{"kubernetes-admin", "system:masters", "", "clientAuth"};
  for (const auto& [name, wish] : {std::pair("/client", proxy), std::pair("/admin", admin)}) {
    const auto pair = ensure_pair(directory + name, &*authority, wish);
    if (!pair) {
      return tl::unexpected(pair.error());
    }
  }
  const std::string token = directory + "/token";
  if (!std::filesystem::exists(token, error) && !write_file(token, random_hex(32) + "\n")) {
    return fail(Errc::Invalid, "cannot write " + token);
  }
  return ensure_server(directory, *authority, addresses);
}

Result<> write_kubeconfigs(
    const std::string& directory, const std::string& server, const std::string& token) {
  const auto config = [&](const std::string& user) {
    return fmt::format(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
        "clusters:\n- name: test\n  cluster:\n    server: {}\n    certificate-authority: ca.crt\n"
        "contexts:\n- name: test\n  context:\n    cluster: test\n    user: test\n"
        "users:\n- name: test\n  user:\n{}",
        server,
        user);
  };
  const auto certificate = [](const char* name) {
    return fmt::format("    client-certificate: {0}.crt\n    client-key: {0}.key\n", name);
  };
  const std::string bearer =
      token.empty() ? "    tokenFile: token\n" : fmt::format("    token: \"{}\"\n", token);
  if (!write_file(directory + "/kubeconfig", config(certificate("client"))) ||
      !write_file(directory + "/kubeconfig-admin", config(certificate("admin"))) ||
      !write_file(directory + "/kubeconfig-token", config(bearer))) {
    return fail(Errc::Invalid, "cannot write a kubeconfig in " + directory);
  }
  return {};
}

}  // namespace shunt::test_api
