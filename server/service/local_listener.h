#ifndef SLIPSTREAM_SERVER_SERVICE_LOCAL_LISTENER_H_
#define SLIPSTREAM_SERVER_SERVICE_LOCAL_LISTENER_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Lets processes of this machine and user reach a gRPC server through local sockets
/// (common/local/local_socket.h): each connection becomes one of the server's, with the same
/// bounds, probes and services as those over TCP. Processes of other users are turned away.
///
/// Thread-safe. Its thread only accepts.
class LocalListener {
 public:
  /// Begins to accept. `server` must outlive the listener, and be shut down after it has gone.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Start(const std::string& name,
                                                              grpc::Server& server);

  /// Accepts nothing more; what was accepted is the server's.
  ~LocalListener();
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

 private:
  LocalListener(FileDescriptor listening, FileDescriptor stop, grpc::Server& server);

  void Accept();
  void TakeNext();

  // Constant after construction.
  const FileDescriptor listening_;
  const FileDescriptor stop_;  // An eventfd that becomes readable.

  grpc::Server& server_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_LOCAL_LISTENER_H_
