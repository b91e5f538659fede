#ifndef SLIPSTREAM_SERVER_SERVICE_SHARED_PATH_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARED_PATH_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"
#include "common/local/local_notes.h"
#include "common/local/shared_arena.h"
#include "common/protocol/shard_messages.h"
#include "server/service/shared_memory_room.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The shard's end of the shared memory of one exchange stream.
///
/// Open names a local socket that nobody else is told of, and Attach takes the one connection to
/// it, of the same user, and the worker's arena. From then on the stream's messages go over that
/// socket, which takes a fraction of the time, pushes may lie in the arena, and answers in buffers
/// of weights, whose files go over the socket before they are named.
///
/// Not thread-safe: one owner, the stream's call. The room must outlive it.
class SharedPath {
 public:
  explicit SharedPath(SharedMemoryRoom& room) : room_(room) {}
  ~SharedPath();
  SharedPath(const SharedPath&) = delete;
  SharedPath& operator=(const SharedPath&) = delete;

  /// Once each, in this order. What is refused has no effect, but for the attempt.
  SharedMemoryReply Open();
  SharedMemoryReply Attach();
  void Detach();
  bool is_attached() const { return socket_.is_open(); }

  /// Where the values of the next chunk are. INVALID_ARGUMENT if there is no such place, or they
  /// are more than a message may bring. Stays until the path goes.
  absl::StatusOr<UnreadValues> Find(const SharedValues& values);

  /// Tells the worker that the chunks found so far have been read. Fails if it does not follow.
  absl::Status TellTaken();

  /// Where the worker can read the weights; nothing if it cannot.
  std::optional<SharedWeights> Show(const Weights& weights);

  /// Once attached, the worker's messages come here. Nothing if none has; UNAVAILABLE if the worker
  /// is gone, INVALID_ARGUMENT if it sends something else.
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Receive();

  /// The answer to them, or if it is longer than this takes, word that it comes on the stream.
  /// Neither waits; both fail if the worker does not read.
  static constexpr size_t kAnswerBytesMax = LocalNote::kTextBytesMax;
  absl::Status Send(const grpc::ByteBuffer& answer);
  absl::Status SendOnStream();

  /// Open once attached.
  const FileDescriptor& socket() const { return socket_; }

 private:
  /// A buffer whose file the worker has.
  struct Shown {
    uint64_t number = 0;
    std::weak_ptr<const SharedBuffer> buffer;
  };

  absl::Status TakeArena(const FileDescriptor& socket);
  bool IsKnown(const SharedBuffer& buffer);

  /// Tells the worker to let go of buffers that are no more, and of the one shown longest ago if it
  /// has as many as it may.
  absl::Status MakeRoom();

  SharedMemoryRoom& room_;
  std::string name_;
  FileDescriptor listening_;  // Open between Open and Attach.
  FileDescriptor socket_;     // Open from Attach on.
  std::optional<ForeignArena> arena_;
  uint64_t kept_bytes_ = 0;   // Of the room.
  uint64_t found_ = 0;        // Chunks.
  std::vector<Shown> shown_;  // The one shown last is the last.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARED_PATH_H_
