#include "common/security/authority.h"

#include <arpa/inet.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "common/security/certificate.h"
#include "common/security/openssl_handles.h"

namespace slipstream {
namespace {

constexpr long kVersion3 = 2;  // X.509 counts from 0.
constexpr int kSerialBytes = 16;

KeyHandle NewKey() {
  KeyHandle key(EVP_EC_gen("P-256"));
  PS_CHECK(key != nullptr);
  return key;
}

std::string PemOf(BIO* memory) {
  const char* bytes = nullptr;
  const long length = BIO_get_mem_data(memory, &bytes);
  return {bytes, static_cast<size_t>(length)};
}

std::string PemOf(EVP_PKEY* key) {
  const BioHandle memory(BIO_new(BIO_s_mem()));
  PS_CHECK(PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return PemOf(memory.get());
}

std::string PemOf(X509* certificate) {
  const BioHandle memory(BIO_new(BIO_s_mem()));
  PS_CHECK(PEM_write_bio_X509(memory.get(), certificate) == 1);
  return PemOf(memory.get());
}

void AddName(X509_NAME* name, const char* field, const std::string& text) {
  PS_CHECK(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0) == 1);
}

void SetRandomSerial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes = {};
  PS_CHECK(RAND_bytes(bytes.data(), kSerialBytes) == 1);
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7F) | 0x40);  // Positive, and of full length.
  BIGNUM* const number = BN_bin2bn(bytes.data(), kSerialBytes, nullptr);
  PS_CHECK(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr);
  BN_free(number);
}

/// Returns a certificate without the parts that depend on its kind; it is not signed yet.
X509Handle NewCertificate(const std::string& run, const std::string& member,
                          const Validity& validity, EVP_PKEY* key) {
  X509Handle certificate(X509_new());
  PS_CHECK(certificate != nullptr && X509_set_version(certificate.get(), kVersion3) == 1);
  SetRandomSerial(certificate.get());
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(validity.begins));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(validity.ends));
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  AddName(name, "O", "Slipstream");
  AddName(name, "OU", run);
  AddName(name, "CN", member);
  PS_CHECK(X509_set_pubkey(certificate.get(), key) == 1);
  return certificate;
}

void AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  PS_CHECK(extension != nullptr);
  PS_CHECK(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

void AddText(GENERAL_NAMES* names, int type, const std::string& text) {
  ASN1_IA5STRING* const value = ASN1_IA5STRING_new();
  ASN1_STRING_set(value, text.data(), static_cast<int>(text.size()));
  GENERAL_NAME* const name = GENERAL_NAME_new();
  GENERAL_NAME_set0_value(name, type, value);
  sk_GENERAL_NAME_push(names, name);
}

void AddHost(GENERAL_NAMES* names, const std::string& host) {
  ASN1_OCTET_STRING* const address = a2i_IPADDRESS(host.c_str());
  if (address == nullptr) return AddText(names, GEN_DNS, host);
  GENERAL_NAME* const name = GENERAL_NAME_new();
  GENERAL_NAME_set0_value(name, GEN_IPADD, address);
  sk_GENERAL_NAME_push(names, name);
}

void AddAlternativeNames(X509* certificate, const CertifiedIdentity& identity,
                         const std::vector<std::string>& hosts) {
  const NamesHandle names(sk_GENERAL_NAME_new_null());
  AddText(names.get(), GEN_URI, identity.ToUri());
  for (const std::string& host : hosts) AddHost(names.get(), host);
  PS_CHECK(X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, 0) == 1);
}

std::string Sign(X509* certificate, EVP_PKEY* key) {
  PS_CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
  return PemOf(certificate);
}

/// An authority, ready to sign.
struct Signer {
  X509Handle certificate;
  KeyHandle key;
  absl::Time ends;
};

absl::StatusOr<Signer> ReadSigner(const KeyedCertificate& authority) {
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(authority.certificate);
  if (!facts.ok()) return facts.status();
  if (!facts->is_authority) return absl::InvalidArgumentError("it is no authority's certificate");
  if (absl::Status fits = CheckKey(authority.certificate, authority.key); !fits.ok()) return fits;
  return Signer{.certificate = NextCertificate(ReaderOf(authority.certificate).get()),
                .key = ReadPrivateKey(authority.key),
                .ends = facts->ends};
}

std::string CertifyKey(const Signer& signer, const CertifiedIdentity& identity,
                       const std::vector<std::string>& hosts, Validity validity, EVP_PKEY* key) {
  validity.ends = std::min(validity.ends, signer.ends);
  const X509Handle made =
      NewCertificate(identity.run, MemberName(identity.role, identity.number), validity, key);
  X509* const certificate = made.get();
  X509* const issuer = signer.certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  AddExtension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
  AddExtension(certificate, issuer, NID_key_usage, "critical,digitalSignature");
  const bool is_server = identity.role == CertifiedRole::kServer;
  AddExtension(certificate, issuer, NID_ext_key_usage,
               is_server ? "serverAuth,clientAuth" : "clientAuth");
  AddExtension(certificate, issuer, NID_subject_key_identifier, "hash");
  AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
  AddAlternativeNames(certificate, identity, hosts);
  return Sign(certificate, signer.key.get());
}

}  // namespace

KeyedCertificate MakeAuthority(const std::string& run, const Validity& validity) {
  const KeyHandle key = NewKey();
  const X509Handle made = NewCertificate(run, "authority", validity, key.get());
  X509* const certificate = made.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  AddExtension(certificate, certificate, NID_subject_key_identifier, "hash");
  return {.key = PemOf(key.get()), .certificate = Sign(certificate, key.get())};
}

absl::StatusOr<KeyedCertificate> Certify(const KeyedCertificate& authority,
                                         const CertifiedIdentity& identity,
                                         const std::vector<std::string>& hosts,
                                         const Validity& validity) {
  const absl::StatusOr<Signer> signer = ReadSigner(authority);
  if (!signer.ok()) return signer.status();
  const KeyHandle key = NewKey();
  return KeyedCertificate{.key = PemOf(key.get()),
                          .certificate = CertifyKey(*signer, identity, hosts, validity, key.get())};
}

absl::StatusOr<std::string> Renew(const KeyedCertificate& authority, std::string_view certificate,
                                  const Validity& validity) {
  const absl::StatusOr<Signer> signer = ReadSigner(authority);
  if (!signer.ok()) return signer.status();
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(certificate);
  if (!facts.ok()) return facts.status();
  const absl::StatusOr<CertifiedIdentity> identity = IdentityAmong(facts->uris);
  if (!identity.ok()) return identity.status();
  const X509Handle old = NextCertificate(ReaderOf(certificate).get());
  // Otherwise anybody who can put a file there would get a certificate.
  if (X509_verify(old.get(), X509_get0_pubkey(signer->certificate.get())) != 1) {
    TakeOpensslError();
    return absl::InvalidArgumentError("another authority has signed it");
  }
  return CertifyKey(*signer, *identity, facts->hosts, validity, X509_get0_pubkey(old.get()));
}

}  // namespace slipstream
