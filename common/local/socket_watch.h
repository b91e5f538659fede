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

/// Calls the owners of sockets when there is something to read, on a few threads, each for the
/// sockets that it was given: they wait for all of these together, and owners that work long hold
/// up no others than those of the same thread. A thread begins with its first socket.
///
/// Thread-safe. Must outlive its sockets.
class SocketWatch {
 public:
  /// Who owns a socket.
  class Reader {
   public:
    virtual ~Reader() = default;

    /// There is something to read, or the other end is gone. The socket is not armed; nothing else
    /// is called before it is again.
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

  /// Null if there are no descriptors or threads for one.
  Lane* NextLane();

  Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);  // Null: not begun.
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

/// A socket that may be watched; a member of its reader. Thread-safe.
class SocketWatch::Socket {
 public:
  explicit Socket(SocketWatch& watch) : watch_(watch) {}
  ~Socket() { Unbind(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Once. `socket` must stay open until Unbind; `reader` is this one's owner, and is kept while it
  /// is called. False if the system watches nothing more.
  bool Bind(const FileDescriptor& socket, std::weak_ptr<Reader> reader);

  /// Nothing is called any more but what has begun.
  void Unbind();

  /// The reader is called once from now on. Until `awake_until` its thread does not sleep, but
  /// looks again and again. REQUIRES: bound.
  void Arm(std::chrono::steady_clock::time_point awake_until);

  /// True if it was armed: the reader is not called then.
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
