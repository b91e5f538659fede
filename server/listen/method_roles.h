#ifndef SLIPSTREAM_SERVER_LISTEN_METHOD_ROLES_H_
#define SLIPSTREAM_SERVER_LISTEN_METHOD_ROLES_H_

#include <string_view>

#include "common/security/certified_identity.h"

namespace slipstream {

/// Returns whether the holder of a certificate with this role may call a method, named as in gRPC,
/// for instance "/slipstream.v1.Coordinator/Register". Nobody may call methods of ours that the
/// list lacks. Everybody may call those of other services: health, reflection, and methods that do
/// not exist. The holder of a token may call what workers, operators, viewers and readers may.
bool MayCall(CertifiedRole role, std::string_view method);
bool TokenMayCall(std::string_view method);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_METHOD_ROLES_H_
