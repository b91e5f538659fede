#ifndef SLIPSTREAM_WORKER_CLIENT_SHARED_WINDOW_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARED_WINDOW_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/file_descriptor.h"
#include "common/local/local_notes.h"
#include "common/local/shared_memory.h"
#include "common/protocol/shard_messages.h"
#include "common/rpc/awake_wait.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"

namespace slipstream {

/// The worker's end of the shared memory of one exchange stream: a window for the values of pushes,
/// used piece after piece like a ring, and the buffers that the shard answers with.
///
/// Once attached, the stream's messages go over a local socket, which takes a fraction of the time;
/// files, and the word that a piece was read, come over it too. It closes when the shard's end
/// goes, and the stream is looked at now and then, so nobody waits for the dead.
///
/// Not thread-safe: one owner, that of the stream; other threads may throw its switch.
class SharedWindow {
 public:
  /// Agrees on a window for pieces of `piece_bytes`. FAILED_PRECONDITION says why there is none,
  /// and the stream can be used all the same; after any other failure it cannot. `stream` and
  /// `cancel` must outlive the window; what comes over the stream is read ahead from now on.
  static absl::StatusOr<std::unique_ptr<SharedWindow>> Attach(RawCall& stream, size_t piece_bytes,
                                                              absl::Time deadline,
                                                              CancelSwitch& cancel);

  /// Sends a message of the stream.
  absl::Status Send(const grpc::ByteBuffer& message);

  /// The next message of an answer; nothing if the answer comes over the stream. Stays awake for
  /// one that comes soon.
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Receive(absl::Time deadline);

  /// The answer to a push is there, which gives all places back.
  void OnAnswer() { taken_ = placed_; }

  /// Copies at most `piece_bytes` to the window, once there is room.
  absl::StatusOr<SharedValues> Place(std::span<const float> values, absl::Time deadline);

  /// The `count` values of a buffer, to be copied and then tested with IsIntact. Valid until the
  /// next call of this object. INTERNAL if the shard has not given the buffer as it should have.
  absl::StatusOr<std::span<const float>> Find(const SharedWeights& weights, size_t count,
                                              absl::Time deadline);

  /// What has been copied is what the shard answered with. False if it took the buffer back, as it
  /// does from a reader that takes too long.
  bool IsIntact(const SharedWeights& weights) const;

 private:
  struct Buffer {
    FileDescriptor file;
    SharedMapping mapping;  // Once its values were asked for; the file is closed then.
  };

  SharedWindow(RawCall& stream, FileDescriptor socket, size_t piece_bytes, CancelSwitch& cancel)
      : stream_(stream), socket_(std::move(socket)), piece_bytes_(piece_bytes), cancel_(cancel) {}

  absl::Status TakeWindow(absl::Time deadline);

  /// Waits for the next note and does what it says.
  absl::Status TakeNote(absl::Time deadline, absl::Time awake_until);
  absl::Status Heed(ReceivedNote note);
  absl::StatusOr<ReceivedNote> NextNote(absl::Time deadline, absl::Time awake_until);

  // Constant after construction.
  RawCall& stream_;
  const FileDescriptor socket_;
  const size_t piece_bytes_;

  CancelSwitch& cancel_;
  SharedMapping window_;
  uint64_t pieces_ = 0;  // That fit the window.
  uint64_t placed_ = 0;
  uint64_t taken_ = 0;
  AwakeWait place_wait_;
  AwakeWait answer_wait_;
  std::map<uint64_t, Buffer> buffers_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARED_WINDOW_H_
