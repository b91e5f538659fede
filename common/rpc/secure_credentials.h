#ifndef SLIPSTREAM_COMMON_RPC_SECURE_CREDENTIALS_H_
#define SLIPSTREAM_COMMON_RPC_SECURE_CREDENTIALS_H_

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "common/security/credential_files.h"

namespace slipstream {

/// The metadata by which a client shows the run's token: "Bearer <token>".
constexpr char kTokenMetadata[] = "authorization";
constexpr char kTokenScheme[] = "Bearer ";

/// How the channels of a process show who it is and whom they take for a server. One for all of
/// its channels: a thread reads the files again every few seconds, so that a renewed certificate
/// holds for the next connection. Without encryption it is gRPC's plaintext. A file that cannot be
/// read leaves what was read before; one that is wrong makes new connections fail until it is
/// right.
///
/// A server has to have a certificate for the host that it is called by, signed by the authority.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const CredentialFiles& files);

/// The same for a server. Clients have to show a certificate that the authority has signed; those
/// without one come in only where there are tokens, and then `processor` has to look at the token
/// of each call. REQUIRES: files.is_encrypted().
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const CredentialFiles& files, const std::shared_ptr<grpc::AuthMetadataProcessor>& processor);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_SECURE_CREDENTIALS_H_
