#ifndef SLIPSTREAM_COMMON_LOCAL_SOCKET_WATCH_H_
#define SLIPSTREAM_COMMON_LOCAL_SOCKET_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Calls the owners of sockets when there is something to read. A few threads do that; each waits
/// for all the sockets that it was given, so an owner that works for long delays only the owners on
/// the same thread. A thread starts with its first socket.
///
/// Thread-safe. Must outlive its sockets.
class SocketWatch {
 public:
  /// The owner of a socket.
  class Reader {
   public:
    virtual ~Reader() = default;

    /// Called when there is something to read, or the other end is gone. The socket is not armed
    /// then, and there is no other call until it is armed again.
    virtual void OnReadable() = 0;
  };

  class Socket;

  /// REQUIRES: threads > 0.
  explicit SocketWatch(size_t threads);
  ~SocketWatch();
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;

 private:
  /// One thread and its sockets.
  class Lane;

  /// Returns the next lane in turn; null if there are no descriptors or threads for it.
  Lane* NextLane();

  Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);  // Null: not started yet.
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

/// A socket that may be watched. It is a member of its reader. Thread-safe.
class SocketWatch::Socket {
 public:
  explicit Socket(SocketWatch& watch) : watch_(watch) {}
  ~Socket() { Unbind(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Begins to watch `socket`, which must stay open until Unbind. `reader` owns this object, and is
  /// kept alive while it is called. Returns false if the system can watch nothing more. Call once.
  bool Bind(const FileDescriptor& socket, std::weak_ptr<Reader> reader);

  /// Ends the watching. A call of the reader that has begun goes on, and no other begins.
  void Unbind();

  /// Lets the reader be called once from now on. Until `awake_until` its thread polls instead of
  /// sleeping. REQUIRES: bound.
  void Arm(std::chrono::steady_clock::time_point awake_until);

  /// Keeps the reader from being called. Returns false if the socket was not armed, perhaps because
  /// a call has begun.
  bool Disarm();

 private:
  friend class Lane;

  SocketWatch& watch_;
  Mutex mutex_;
  Lane* lane_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Null: not bound.
  uint64_t id_ ABSL_GUARDED_BY(mutex_) = 0;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  bool is_armed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_SOCKET_WATCH_H_
