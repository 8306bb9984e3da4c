// Certificates made while a test runs: an authority, and what it issues. P-256, because it is
// quick.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <string>

#include "base/handle.h"

namespace shunt::apiserver::testing {

struct Issued {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

class Authority {
 public:
  explicit Authority(const std::string& name = "test authority");

  const std::string& pem() const { return pem_; }
  // `names` as OpenSSL writes subjectAltName: "DNS:api.example,IP:127.0.0.1"; "" for none.
  Issued issue(const std::string& common_name, const std::string& names) const;

 private:
  Handle<EVP_PKEY, EVP_PKEY_free> key_;
  Handle<X509, X509_free> certificate_;
  std::string pem_;
};

}  // namespace shunt::apiserver::testing
