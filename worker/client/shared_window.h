#ifndef SLIPSTREAM_WORKER_CLIENT_SHARED_WINDOW_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARED_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/file_descriptor.h"
#include "common/local/local_notes.h"
#include "common/local/shared_memory.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"

namespace slipstream {

/// The worker's end of the shared memory of one exchange stream: a window for the values of pushes,
/// used piece after piece like a ring, and the buffers that the shard answers with.
///
/// What is said of them goes over the stream; files, and the word that a piece was read, come over
/// a local socket. That closes when the shard's end goes, so nobody waits for the dead.
///
/// Not thread-safe: one owner, that of the stream; other threads may throw its switch.
class SharedWindow {
 public:
  /// Agrees on a window for pieces of `piece_bytes`. FAILED_PRECONDITION says why there is none,
  /// and the stream can be used all the same; after any other failure it cannot. `cancel` must
  /// outlive the window.
  static absl::StatusOr<std::unique_ptr<SharedWindow>> Attach(RawCall& stream, size_t piece_bytes,
                                                              absl::Time deadline,
                                                              CancelSwitch& cancel);

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

  SharedWindow(FileDescriptor socket, size_t piece_bytes, CancelSwitch& cancel)
      : socket_(std::move(socket)), piece_bytes_(piece_bytes), cancel_(cancel) {}

  absl::Status TakeWindow(absl::Time deadline);

  /// Waits for the next note and does what it says.
  absl::Status TakeNote(absl::Time deadline);
  absl::StatusOr<ReceivedNote> NextNote(absl::Time deadline);

  // Constant after construction.
  const FileDescriptor socket_;
  const size_t piece_bytes_;

  CancelSwitch& cancel_;
  SharedMapping window_;
  uint64_t pieces_ = 0;  // That fit the window.
  uint64_t placed_ = 0;
  uint64_t taken_ = 0;
  std::map<uint64_t, Buffer> buffers_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARED_WINDOW_H_
