#include "server/service/local_listener.h"

#include <grpcpp/server_posix.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "common/local/local_socket.h"

namespace slipstream {
namespace {

/// Until files may have been closed, where this process has too many open to accept another.
constexpr int kFullPauseMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Start(const std::string& name,
                                                                    grpc::Server& server) {
  absl::StatusOr<FileDescriptor> listening = ListenLocally(name);
  if (!listening.ok()) return listening.status();
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.is_open()) return absl::ResourceExhaustedError("cannot make an eventfd");
  return std::unique_ptr<LocalListener>(
      new LocalListener(*std::move(listening), std::move(stop), server));
}

LocalListener::LocalListener(FileDescriptor listening, FileDescriptor stop, grpc::Server& server)
    : listening_(std::move(listening)),
      stop_(std::move(stop)),
      server_(server),
      thread_([this] { Accept(); }) {}

LocalListener::~LocalListener() {
  const uint64_t one = 1;
  PS_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

void LocalListener::Accept() {
  for (;;) {
    pollfd events[] = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                       {.fd = listening_.get(), .events = POLLIN, .revents = 0}};
    if (poll(events, 2, -1) < 0) continue;  // By a signal.
    if (events[0].revents != 0) return;
    TakeNext();
  }
}

void LocalListener::TakeNext() {
  absl::StatusOr<FileDescriptor> connection = AcceptLocally(listening_);
  if (absl::IsResourceExhausted(connection.status())) {
    spdlog::warn("local connections have to wait reason=\"{}\"",
                 std::string(connection.status().message()));
    pollfd stop = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
    poll(&stop, 1, kFullPauseMs);
    return;
  }
  if (!connection.ok()) return;  // It has gone already.
  if (const absl::Status user = CheckSameUser(*connection); !user.ok()) {
    spdlog::warn("turned a local connection away reason=\"{}\"", std::string(user.message()));
    return;
  }
  grpc::AddInsecureChannelFromFd(&server_, connection->Release());
}

}  // namespace slipstream
