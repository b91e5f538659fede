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

/// Returns the credentials for the channels of a process: they show who it is, and check servers.
/// Make them once for all of its channels: a thread reads the files again every few seconds, so
/// that a renewed certificate applies to the next connection. Without encryption they are gRPC's
/// plaintext. If a file cannot be read, what was read before stays; if one is wrong, new
/// connections fail until it is right.
///
/// A server has to have a certificate for the host that it is called by, signed by the authority.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const CredentialFiles& files);

/// Returns the credentials for a server. Clients must show a certificate that the authority has
/// signed. Clients without one are admitted only if there are tokens, and then `processor` must
/// check the token of each call. REQUIRES: files.is_encrypted().
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const CredentialFiles& files, const std::shared_ptr<grpc::AuthMetadataProcessor>& processor);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_SECURE_CREDENTIALS_H_
