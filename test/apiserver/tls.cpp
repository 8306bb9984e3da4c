#include "test/apiserver/tls.h"

#include <openssl/err.h>

namespace shunt::test_api {
namespace {

int accept_any(int /*verified*/, X509_STORE_CTX* /*context*/) {
  return 1;  // SSL_get_verify_result still tells; the answer is a 401 and not a broken handshake
}

int choose_http1(
    SSL* /*ssl*/,
    const unsigned char** out,
    unsigned char* out_size,
    const unsigned char* offered,
    unsigned int size,
    void* /*unused*/) {
  static const unsigned char http1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, http1, sizeof http1, offered, size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

Result<std::shared_ptr<SSL_CTX>> make_tls_context(
    const std::string& certificate, const std::string& key, const std::string& client_ca) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return fail(Errc::Unsupported, "no TLS 1.2 in this OpenSSL");
  }
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(Errc::Invalid, "cannot use " + certificate + " with " + key);
  }
  // A resumed session may carry no client certificate; tests want the plain story each time.
  (void)SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  (void)SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  (void)SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_http1, nullptr);
  if (!client_ca.empty()) {
    if (SSL_CTX_load_verify_locations(context.get(), client_ca.c_str(), nullptr) != 1) {
      return fail(Errc::Invalid, "cannot use " + client_ca);
    }
    SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(client_ca.c_str()));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE, accept_any);
  }
  return context;
}

}  // namespace shunt::test_api
