#ifndef SLIPSTREAM_SERVER_LISTEN_ACCEPT_LOOP_H_
#define SLIPSTREAM_SERVER_LISTEN_ACCEPT_LOOP_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log_line.h"
#include "common/files/file_descriptor.h"
#include "server/listen/connections.h"

namespace slipstream {

/// Accepts connections, on its own thread, until it is destroyed. If this process may open no more
/// files, connections wait and are accepted once files have been closed. Before it comes to that,
/// connections are turned away, so that other code can still open files.
///
/// While strangers have all their places (see Connections), new connections wait here, at most
/// kWaitingMax, and the next one is drawn by lot: in a queue that strangers keep full, nobody
/// else's turn would come before its patience ends. With N waiting, a connection gets a place after
/// some N/32 s.
///
/// Thread-safe. Its thread accepts, and tends the connections.
class AcceptLoop {
 public:
  /// Accepts a connection, as AcceptConnection does.
  using Acceptor = std::function<absl::StatusOr<FileDescriptor>(const FileDescriptor& listening)>;

  /// Takes over a connection that was accepted from `listening`.
  using Taker = std::function<void(FileDescriptor connection, const FileDescriptor& listening)>;

  /// How many files connections leave to other code, if the limit is at least four times as high.
  static constexpr uint64_t kFilesLeft = 64;

  /// How many connections may wait. If more do, one of them is closed, drawn by lot.
  static constexpr size_t kWaitingMax = 256;

  /// Starts to accept. `listening` is at least one socket that does not block. `connections` notes
  /// all accepted connections, and may be null.
  static absl::StatusOr<std::unique_ptr<AcceptLoop>> Start(std::vector<FileDescriptor> listening,
                                                           Acceptor accept, Taker take,
                                                           Connections* connections = nullptr);

  /// Stops accepting. Accepted connections stay with their taker.
  ~AcceptLoop();
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

 private:
  AcceptLoop(std::vector<FileDescriptor> listening, FileDescriptor stop, Acceptor accept,
             Taker take, Connections* connections);

  void Run();
  bool HasPlace() const { return connections_ == nullptr || connections_->HasPlace(); }
  void TakeNext(const FileDescriptor& listening);
  void TakeWaiting();
  void Take(FileDescriptor connection, const FileDescriptor& listening, bool has_waited);
  void AwaitPlace();

  /// Logs a warning, but not again and again while its cause lasts.
  void Warn(const LogLine& line);

  // Constant after construction.
  const std::vector<FileDescriptor> listening_;
  const FileDescriptor stop_;  // An eventfd, readable once the thread is to stop.
  const Acceptor accept_;
  const Taker take_;
  Connections* const connections_;

  /// A connection that was accepted, and has no place yet.
  struct Waiting {
    FileDescriptor connection;
    const FileDescriptor* listening;
  };

  // Owned by the thread.
  std::vector<Waiting> waiting_;
  std::minstd_rand lot_;  // Has a fixed seed: nobody gains much by knowing who is next.
  std::optional<std::chrono::steady_clock::time_point> warned_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_ACCEPT_LOOP_H_
