#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARED_MEMORY_CHANNEL_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARED_MEMORY_CHANNEL_H_

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
#include "server/data_plane/shared_memory_use.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The shard's end of the shared memory of one exchange stream.
///
/// Open makes a local socket whose name nobody but the worker is told. Attach takes the one
/// connection to it, of the same user, and the worker's arena. From then on the stream's messages
/// go over that socket, which takes a fraction of the time. Pushes may lie in the arena, and
/// answers in buffers of weights, whose files go over the socket before they are named.
///
/// Not thread-safe: one owner, the stream's call. `memory_use` must outlive it.
class SharedMemoryChannel {
 public:
  explicit SharedMemoryChannel(SharedMemoryUse& memory_use) : memory_use_(memory_use) {}
  ~SharedMemoryChannel();
  SharedMemoryChannel(const SharedMemoryChannel&) = delete;
  SharedMemoryChannel& operator=(const SharedMemoryChannel&) = delete;

  /// To be called once each, in this order. A refused attempt has no other effect.
  SharedMemoryReply Open();
  SharedMemoryReply Attach();
  void Detach();
  bool is_attached() const { return socket_.is_open(); }

  /// Returns where the values of the next chunk are, valid until the channel is destroyed. Fails
  /// with INVALID_ARGUMENT if there is no such place, or if they are more than a message may bring.
  absl::StatusOr<UnreadValues> Find(const SharedValues& values);

  /// Tells the worker that the chunks found so far have been read. Fails if the worker does not
  /// read.
  absl::Status TellTaken();

  /// Returns where the worker can read the weights; nothing if it cannot.
  std::optional<SharedWeights> Show(const Weights& weights);

  /// Returns the worker's next message, once attached; nothing if none has come. Fails with
  /// UNAVAILABLE if the worker is gone, with INVALID_ARGUMENT if it sends something else.
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Receive();

  /// Send the answer or, if it is longer than this, the note that it comes on the stream. Neither
  /// waits; both fail if the worker does not read.
  static constexpr size_t kAnswerBytesMax = LocalNote::kTextBytesMax;
  absl::Status Send(const grpc::ByteBuffer& answer);
  absl::Status SendOnStream();

  /// The local socket, open once attached.
  const FileDescriptor& socket() const { return socket_; }

 private:
  /// A buffer whose file the worker has.
  struct Shown {
    uint64_t number = 0;
    std::weak_ptr<const SharedBuffer> buffer;
  };

  absl::Status TakeArena(const FileDescriptor& socket);
  bool IsKnown(const SharedBuffer& buffer);

  /// Tells the worker to unmap buffers that are gone, and the one shown longest ago if the worker
  /// has `shown_max`.
  absl::Status DropOldest(size_t shown_max);

  SharedMemoryUse& memory_use_;
  std::string name_;
  FileDescriptor listening_;  // Open between Open and Attach.
  FileDescriptor socket_;     // Open from Attach on.
  std::optional<ForeignArena> arena_;
  uint64_t kept_bytes_ = 0;   // Pages kept mapped, counted in memory_use_.
  uint64_t found_ = 0;        // The number of chunks.
  std::vector<Shown> shown_;  // The one shown last is at the end.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARED_MEMORY_CHANNEL_H_
