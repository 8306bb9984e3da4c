// The TLS side of a connection: whom to trust, and who we are. One home of OpenSSL, together with
// connection.cpp.
//
// The server is always verified, by name or address as written in its subjectAltName; the common
// name never counts, and there is no way to turn it off. TLS 1.2 at least.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/handle.h"
#include "base/result.h"
#include "net/ip_address.h"

namespace shunt::apiserver {

struct TlsMaterial {
  std::string ca;           // PEM; "": the roots of this system
  std::string certificate;  // PEM, the chain of the client certificate; "": none
  std::string key;          // PEM
  bool operator==(const TlsMaterial&) const = default;
};

using Ssl = Handle<SSL, SSL_free>;

// Immutable, so that threads may share it.
class TlsContext {
 public:
  // No error holds any of the material.
  static Result<std::shared_ptr<const TlsContext>> make(const TlsMaterial& material);

  // A client session that accepts only a server which proves to be `name`.
  Result<Ssl> session(const std::string& name) const;

 private:
  using Context = Handle<SSL_CTX, SSL_CTX_free>;
  explicit TlsContext(Context context) : context_(std::move(context)) {}
  Context context_;
};

// What OpenSSL has to say about this thread's last failure; empties its queue.
std::string openssl_error();

}  // namespace shunt::apiserver
