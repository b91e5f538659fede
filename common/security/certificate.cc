#include "common/security/certificate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include "common/base/printable.h"
#include "common/files/file_descriptor.h"
#include "common/security/openssl_handles.h"

namespace slipstream {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;

std::string TextOf(const X509_NAME* name) {
  const BioHandle text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), name, 0, XN_FLAG_RFC2253);
  const char* bytes = nullptr;
  const long length = BIO_get_mem_data(text.get(), &bytes);
  return Printable({bytes, static_cast<size_t>(length)});
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string BytesOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

/// Returns the address as text; empty if it is none.
std::string AddressOf(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const int length = ASN1_STRING_length(address);
  if (length != 4 && length != 16) return "";
  inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text.data(),
            text.size());
  return text.data();
}

void ReadNames(const X509& certificate, CertificateFacts& facts) {
  const NamesHandle names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) facts.uris.push_back(BytesOf(name->d.uniformResourceIdentifier));
    if (name->type == GEN_DNS) facts.hosts.push_back(Printable(BytesOf(name->d.dNSName)));
    if (name->type == GEN_IPADD) facts.hosts.push_back(AddressOf(name->d.iPAddress));
  }
}

absl::Status NoCertificate() {
  ERR_clear_error();
  return absl::InvalidArgumentError("there is no certificate in PEM form");
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const auto failure = [&path](const std::string& reason) {
    return absl::NotFoundError("cannot read " + path + ": " + reason);
  };
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return failure(std::generic_category().message(errno));
  std::string text;
  std::array<char, 16384> bytes;
  for (;;) {
    const ssize_t count = read(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure(std::generic_category().message(errno));
    if (count == 0) return text;
    text.append(bytes.data(), static_cast<size_t>(count));
    if (text.size() > kFileBytesMax) return failure("it is larger than a MiB");
  }
}

absl::StatusOr<CertificateFacts> ParseCertificate(std::string_view pem) {
  const X509Handle certificate = NextCertificate(ReaderOf(pem).get());
  if (certificate == nullptr) return NoCertificate();
  CertificateFacts facts = {.subject = TextOf(X509_get_subject_name(certificate.get())),
                            .begins = TimeOf(X509_get0_notBefore(certificate.get())),
                            .ends = TimeOf(X509_get0_notAfter(certificate.get())),
                            .is_authority = X509_check_ca(certificate.get()) == 1};
  ReadNames(*certificate, facts);
  return facts;
}

absl::Status VerifyCertificate(std::string_view ca, std::string_view certificate, TlsEnd end,
                               absl::Time now) {
  const StoreHandle store(X509_STORE_new());
  const BioHandle authorities = ReaderOf(ca);
  size_t count = 0;
  while (const X509Handle authority = NextCertificate(authorities.get())) {
    X509_STORE_add_cert(store.get(), authority.get());
    ++count;
  }
  if (count == 0) return NoCertificate();
  const BioHandle chain = ReaderOf(certificate);
  const X509Handle first = NextCertificate(chain.get());
  if (first == nullptr) return NoCertificate();
  STACK_OF(X509)* const others = sk_X509_new_null();
  while (X509Handle next = NextCertificate(chain.get())) sk_X509_push(others, next.release());
  ERR_clear_error();  // The end of the text is noted as an error.

  const StoreContextHandle context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), first.get(), others);
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  X509_STORE_CTX_set_purpose(
      context.get(), end == TlsEnd::kServer ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  const bool is_valid = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  sk_X509_pop_free(others, X509_free);
  ERR_clear_error();
  if (is_valid) return absl::OkStatus();
  return absl::InvalidArgumentError(X509_verify_cert_error_string(error));
}

absl::Status CheckKey(std::string_view certificate, std::string_view key) {
  const X509Handle first = NextCertificate(ReaderOf(certificate).get());
  if (first == nullptr) return NoCertificate();
  const KeyHandle private_key = ReadPrivateKey(key);
  if (private_key == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError("there is no private key in PEM form without a password");
  }
  if (X509_check_private_key(first.get(), private_key.get()) == 1) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError("the key is another certificate's");
}

absl::Status CheckHost(std::string_view certificate, std::string_view host) {
  const X509Handle first = NextCertificate(ReaderOf(certificate).get());
  if (first == nullptr) return NoCertificate();
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string name(host);
  const bool is_address = X509_check_ip_asc(first.get(), name.c_str(), 0) == 1;
  if (is_address || X509_check_host(first.get(), name.data(), name.size(), 0, nullptr) == 1) {
    return absl::OkStatus();
  }
  ERR_clear_error();
  return absl::InvalidArgumentError("the certificate is not for the host " + Printable(host));
}

std::string TakeOpensslError() {
  const unsigned long error = ERR_peek_last_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  std::string text = reason == nullptr ? "no reason is known" : reason;
  ERR_clear_error();
  return text;
}

}  // namespace slipstream
