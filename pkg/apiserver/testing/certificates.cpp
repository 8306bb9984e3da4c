#include "apiserver/testing/certificates.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <stdexcept>

namespace shunt::apiserver::testing {
namespace {

using Bio = Handle<BIO, BIO_free>;
using Key = Handle<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Handle<X509, X509_free>;
using Extension = Handle<X509_EXTENSION, X509_EXTENSION_free>;

void require(bool good, const char* what) {
  if (!good) {
    throw std::runtime_error(what);
  }
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Key new_key() {
  Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "no key");
  return key;
}

void add_extension(X509* certificate, int nid, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
  require(extension != nullptr, value.c_str());
  X509_add_ext(certificate, extension.get(), -1);
}

Certificate new_certificate(EVP_PKEY* key, const std::string& name) {
  static std::atomic<long> serial{1};
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24L * 3600);
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate.get()),
      "CN",
      MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(name.c_str()),
      -1,
      -1,
      0);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

std::string pem_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return text_of(bio.get());
}

}  // namespace

Authority::Authority(const std::string& name)
    : key_(new_key()), certificate_(new_certificate(key_.get(), name)) {
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  add_extension(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  require(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0, "not signed");
  pem_ = pem_of(certificate_.get());
}

Issued Authority::issue(const std::string& common_name, const std::string& names) const {
  const Key key = new_key();
  const Certificate certificate = new_certificate(key.get(), common_name);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  if (!names.empty()) {
    add_extension(certificate.get(), NID_subject_alt_name, names);
  }
  require(X509_sign(certificate.get(), key_.get(), EVP_sha256()) > 0, "not signed");
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {pem_of(certificate.get()), text_of(bio.get())};
}

}  // namespace shunt::apiserver::testing
