#include "common/rpc/secure_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <map>
#include <string>
#include <utility>

#include "common/process/steady_time.h"
#include "common/security/token_file.h"

namespace slipstream {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned int kRefreshSeconds = 5;

/// Sends the token with every call.
class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(std::string path) : tokens_(std::move(path)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    const std::string token = tokens_.First(SteadyNow());
    if (token.empty())
      return {grpc::StatusCode::UNAUTHENTICATED, "the file with the token is gone"};
    metadata->emplace(kTokenMetadata, kTokenScheme + token);
    return grpc::Status::OK;
  }

 private:
  TokenFile tokens_;
};

std::shared_ptr<tls::CertificateProviderInterface> Watch(const CredentialFiles& files) {
  if (files.certificate.empty()) {
    return std::make_shared<tls::FileWatcherCertificateProvider>(files.ca, kRefreshSeconds);
  }
  return std::make_shared<tls::FileWatcherCertificateProvider>(files.key, files.certificate,
                                                               files.ca, kRefreshSeconds);
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const CredentialFiles& files) {
  if (!files.is_encrypted()) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(files));
  options.watch_root_certs();
  if (!files.certificate.empty()) options.watch_identity_key_cert_pairs();
  std::shared_ptr<grpc::ChannelCredentials> channel = tls::TlsCredentials(options);
  if (files.token.empty()) return channel;
  return grpc::CompositeChannelCredentials(
      channel, grpc::MetadataCredentialsFromPlugin(std::make_unique<TokenPlugin>(files.token)));
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const CredentialFiles& files, const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) {
  tls::TlsServerCredentialsOptions options(Watch(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(files.token.empty()
                                    ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                    : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  std::shared_ptr<grpc::ServerCredentials> credentials = tls::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(processor);
  return credentials;
}

}  // namespace slipstream
