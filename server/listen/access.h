#ifndef SLIPSTREAM_SERVER_LISTEN_ACCESS_H_
#define SLIPSTREAM_SERVER_LISTEN_ACCESS_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/security/token_file.h"
#include "server/listen/audit_log.h"

namespace slipstream {

/// The door that every call over TLS passes before a service hears of it: the peer has to show a
/// certificate of this run whose role may call the method, or the run's token. Others are refused
/// with UNAUTHENTICATED (nothing was shown that says who they are) or PERMISSION_DENIED (it was,
/// and they may not), and a line of the audit log.
///
/// Which member a message is for is not seen here: Caller looks at that.
///
/// Thread-safe.
class Access final : public grpc::AuthMetadataProcessor {
 public:
  /// `run` is the name that certificates have to have; `token` the path of the file with the
  /// tokens, empty where there are none. `audit` must outlive this.
  Access(std::string run, const std::string& token, AuditLog& audit);

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  /// `uris` are those of the peer's certificate; `authorization` is what it has sent by that name.
  absl::Status Check(const std::vector<std::string>& uris, std::string_view authorization,
                     std::string_view method);

  const std::string run_;
  const bool takes_tokens_;
  TokenFile tokens_;
  AuditLog& audit_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_ACCESS_H_
