#ifndef SLIPSTREAM_SERVER_LISTEN_ACCESS_H_
#define SLIPSTREAM_SERVER_LISTEN_ACCESS_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/security/token_file.h"
#include "server/listen/audit_log.h"

namespace slipstream {

/// Checks every call over TLS before a service sees it: the peer has to show a certificate of this
/// run whose role may call the method, or the run's token. Other calls are refused with
/// UNAUTHENTICATED (the peer showed nothing that says who it is) or PERMISSION_DENIED (it did, and
/// may not call the method), and with a line of the audit log.
///
/// Messages are not seen here; Caller checks which member a message is for.
///
/// Thread-safe.
class Access final : public grpc::AuthMetadataProcessor {
 public:
  /// `run` is the name of the run that certificates have to show. `token` is the path of the file
  /// with the tokens, empty if there are none. `audit` must outlive this object.
  Access(std::string run, const std::string& token, AuditLog& audit);

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

  /// Decides whether a peer may call `method`, and notes a refusal, as one of `asked`. `uris` are
  /// those of the peer's certificate, `authorization` is the metadata, or the header, of this name
  /// that it sent.
  absl::Status Admit(const std::vector<std::string>& uris, std::string_view authorization,
                     std::string_view method, std::string_view asked);

 private:
  absl::Status Check(const std::vector<std::string>& uris, std::string_view authorization,
                     std::string_view method);

  const std::string run_;
  const bool takes_tokens_;
  TokenFile tokens_;
  AuditLog& audit_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_ACCESS_H_
