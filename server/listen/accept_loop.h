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
#include "common/files/file_descriptor.h"
#include "server/listen/connections.h"

namespace slipstream {

/// Accepts connections, on its own thread, until it goes. Where this process may open nothing more
/// they wait, and are accepted once files have been closed; before it comes to that, connections
/// are turned away, so that others who open files still can.
///
/// While strangers have all their places, see Connections, those that come wait here, at most
/// kWaitingMax, and who is next is drawn by lot: in a queue that strangers keep full nobody else's
/// turn would come before its patience ends. With N that wait, a place is free after some N/32 s.
///
/// Thread-safe. Its thread accepts, and tends the connections.
class AcceptLoop {
 public:
  /// As AcceptConnection.
  using Acceptor = std::function<absl::StatusOr<FileDescriptor>(const FileDescriptor& listening)>;

  /// Takes a connection, which was accepted from `listening`, over.
  using Taker = std::function<void(FileDescriptor connection, const FileDescriptor& listening)>;

  /// Files that connections leave to others, where the limit is four times as much.
  static constexpr uint64_t kFilesLeft = 64;

  /// If more wait, one of them is closed, drawn by lot.
  static constexpr size_t kWaitingMax = 256;

  /// `listening` are sockets that do not block; at least one. `connections` takes note of all that
  /// are accepted, and may be null.
  static absl::StatusOr<std::unique_ptr<AcceptLoop>> Start(std::vector<FileDescriptor> listening,
                                                           Acceptor accept, Taker take,
                                                           Connections* connections = nullptr);

  /// Accepts nothing more; what was accepted is whose it was given to.
  ~AcceptLoop();
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

 private:
  AcceptLoop(std::vector<FileDescriptor> listening, FileDescriptor stop, Acceptor accept,
             Taker take, Connections* connections);

  void Run();
  bool HasRoom() const { return connections_ == nullptr || connections_->HasRoom(); }
  void TakeNext(const FileDescriptor& listening);
  void TakeWaiting();
  void Take(FileDescriptor connection, const FileDescriptor& listening);
  void AwaitRoom();

  /// Not again and again while it lasts.
  void Warn(std::string_view what);

  // Constant after construction.
  const std::vector<FileDescriptor> listening_;
  const FileDescriptor stop_;  // An eventfd that becomes readable.
  const Acceptor accept_;
  const Taker take_;
  Connections* const connections_;

  /// A connection that was accepted, and has no place yet.
  struct Waiting {
    FileDescriptor connection;
    const FileDescriptor* listening;
  };

  // The thread alone uses these.
  std::vector<Waiting> waiting_;
  std::minstd_rand lot_;  // From its fixed seed: nobody gains much by knowing who is next.
  std::optional<std::chrono::steady_clock::time_point> warned_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_ACCEPT_LOOP_H_
