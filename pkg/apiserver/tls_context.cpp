#include "apiserver/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <string_view>

namespace shunt::apiserver {
namespace {

using Bio = Handle<BIO, BIO_free>;
using Certificate = Handle<X509, X509_free>;
using PrivateKey = Handle<EVP_PKEY, EVP_PKEY_free>;

tl::unexpected<Error> refuse(const std::string& what) {
  ERR_clear_error();
  return fail(Errc::Invalid, what);
}

Bio reader(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// A key with a pass phrase would otherwise ask for it on the terminal.
int no_pass_phrase(char*, int, int, void*) { return -1; }

Certificate next_certificate(BIO* bio) {
  return Certificate(PEM_read_bio_X509(bio, nullptr, no_pass_phrase, nullptr));
}

// Every certificate of a CA bundle is an anchor, also one that is not self-signed: Go's rule.
Result<> trust(SSL_CTX* context, const std::string& ca) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  const Bio bio = reader(ca);
  int count = 0;
  while (const Certificate certificate = next_certificate(bio.get())) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) {
      return refuse("a certificate of the CA bundle cannot be used");
    }
    ++count;
  }
  ERR_clear_error();  // reading past the last one is how the loop ends
  if (count == 0) {
    return refuse("the CA bundle holds no certificate");
  }
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

Result<> present(SSL_CTX* context, const TlsMaterial& material) {
  const Bio certificates = reader(material.certificate);
  const Certificate leaf = next_certificate(certificates.get());
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return refuse("the client certificate is not a PEM certificate");
  }
  while (Certificate link = next_certificate(certificates.get())) {
    if (SSL_CTX_add0_chain_cert(context, link.get()) != 1) {
      return refuse("the chain of the client certificate cannot be used");
    }
    (void)link.release();  // the context owns it now
  }
  ERR_clear_error();
  const Bio keys = reader(material.key);
  const PrivateKey key(PEM_read_bio_PrivateKey(keys.get(), nullptr, no_pass_phrase, nullptr));
  if (!key) {
    return refuse("the client key is not an unencrypted PEM key");
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return refuse("the client key does not belong to the client certificate");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::make(const TlsMaterial& material) {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return refuse("OpenSSL cannot start");
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A session caches nothing that is worth a handshake every few minutes.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  constexpr std::array<unsigned char, 9> kHttp11{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  (void)SSL_CTX_set_alpn_protos(context.get(), kHttp11.data(), kHttp11.size());  // constant, valid
  if (material.ca.empty()) {
    if (SSL_CTX_set_default_verify_paths(context.get()) != 1) {
      return refuse("the CA certificates of this system cannot be used");
    }
  } else if (auto trusted = trust(context.get(), material.ca); !trusted) {
    return tl::unexpected(trusted.error());
  }
  if (!material.certificate.empty()) {
    if (auto presented = present(context.get(), material); !presented) {
      return tl::unexpected(presented.error());
    }
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context)));
}

Result<Ssl> TlsContext::session(const std::string& name) const {
  Ssl ssl(SSL_new(context_.get()));
  if (!ssl) {
    return refuse("OpenSSL cannot make a session");
  }
  X509_VERIFY_PARAM* check = SSL_get0_param(ssl.get());
  if (net::parse_ip(name)) {
    // An address has no place in SNI (RFC 6066); it is looked for among the IP subjectAltNames.
    if (X509_VERIFY_PARAM_set1_ip_asc(check, name.c_str()) != 1) {
      return refuse("the server's address cannot be verified");
    }
  } else {
    X509_VERIFY_PARAM_set_hostflags(
        check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (X509_VERIFY_PARAM_set1_host(check, name.data(), name.size()) != 1 ||
        SSL_set_tlsext_host_name(ssl.get(), name.c_str()) != 1) {
      return refuse("the server's name cannot be verified");
    }
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

std::string openssl_error() {
  std::string out;
  while (const unsigned long code = ERR_get_error()) {
    if (const char* reason = ERR_reason_error_string(code); out.empty() && reason != nullptr) {
      out = reason;
    }
  }
  return out.empty() ? "unknown TLS error" : out;
}

}  // namespace shunt::apiserver
