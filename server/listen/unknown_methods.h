#ifndef SLIPSTREAM_SERVER_LISTEN_UNKNOWN_METHODS_H_
#define SLIPSTREAM_SERVER_LISTEN_UNKNOWN_METHODS_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/server_callback.h>

#include "server/listen/connections.h"

namespace slipstream {

/// Answers calls of methods that a server does not have with UNIMPLEMENTED and the method's name,
/// and counts them among the calls of their connection.
///
/// Thread-safe.
class UnknownMethods final : public grpc::CallbackGenericService {
 public:
  /// `connections` must outlive this object, and may be null.
  explicit UnknownMethods(Connections* connections) : connections_(connections) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  Connections* const connections_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_UNKNOWN_METHODS_H_
