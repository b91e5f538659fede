#ifndef SLIPSTREAM_COMMON_SECURITY_OPENSSL_HANDLES_H_
#define SLIPSTREAM_COMMON_SECURITY_OPENSSL_HANDLES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string_view>

#include "common/base/check.h"

namespace slipstream {

/// Handles that own OpenSSL's objects and free them.
template <auto kFree>
struct OpensslFree {
  template <typename Object>
  void operator()(Object* object) const {
    kFree(object);
  }
};

using BioHandle = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using X509Handle = std::unique_ptr<X509, OpensslFree<X509_free>>;
using StoreHandle = std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>>;
using StoreContextHandle = std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>>;
using NamesHandle = std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>>;

/// Returns a reader of `text`, which must outlive it.
inline BioHandle ReaderOf(std::string_view text) {
  BioHandle reader(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  PS_CHECK(reader != nullptr);
  return reader;
}

/// Returns the next certificate; null at the end, and if there is none.
inline X509Handle NextCertificate(BIO* reader) {
  return X509Handle(PEM_read_bio_X509(reader, nullptr, nullptr, nullptr));
}

/// Returns a private key without a password; null if there is none.
inline KeyHandle ReadPrivateKey(std::string_view pem) {
  // An empty password keeps OpenSSL from asking a person for one.
  char empty[] = "";
  return KeyHandle(PEM_read_bio_PrivateKey(ReaderOf(pem).get(), nullptr, nullptr, empty));
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_OPENSSL_HANDLES_H_
