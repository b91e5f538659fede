#include "server/listen/local_listener.h"

#include <grpcpp/server_posix.h>

#include <vector>

#include "absl/status/status.h"
#include "common/files/file_descriptor.h"
#include "common/local/local_socket.h"
#include "common/log/log.h"

namespace slipstream {

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Start(const std::string& name,
                                                                    grpc::Server& server) {
  absl::StatusOr<FileDescriptor> listening = ListenLocally(name);
  if (!listening.ok()) return listening.status();
  std::vector<FileDescriptor> sockets;
  sockets.push_back(*std::move(listening));
  const auto take = [&server](FileDescriptor connection, const FileDescriptor& /*listening*/) {
    if (const absl::Status user = CheckSameUser(connection); !user.ok()) {
      LogWarning("turned a local connection away", {{"reason", user.message()}});
      return;
    }
    grpc::AddInsecureChannelFromFd(&server, connection.Release());
  };
  auto loop = AcceptLoop::Start(std::move(sockets), AcceptLocally, take);
  if (!loop.ok()) return loop.status();
  return std::unique_ptr<LocalListener>(new LocalListener(*std::move(loop)));
}

}  // namespace slipstream
