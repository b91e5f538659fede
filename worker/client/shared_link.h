#ifndef SLIPSTREAM_WORKER_CLIENT_SHARED_LINK_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARED_LINK_H_

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
#include "common/local/shared_arena.h"
#include "common/local/shared_memory.h"
#include "common/protocol/shard_messages.h"
#include "common/rpc/awake_wait.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"

namespace slipstream {

/// The worker's end of the shared memory of one exchange stream: an arena of the worker's, in which
/// the shard finds the values of pushes, and buffers of the shard's that it answers with.
///
/// Once attached, the stream's messages go over a local socket, which takes a fraction of the time;
/// files, and the word that values were read, go over it too. It closes when the shard's end goes,
/// and the stream is looked at now and then, so nobody waits for the dead. Deadlines are times of
/// SteadyNow.
///
/// Not thread-safe: one owner, that of the stream; other threads may throw its switch.
class SharedLink {
 public:
  /// Agrees on shared memory. FAILED_PRECONDITION says why there is none, and the stream can be
  /// used all the same; after any other failure it cannot. `stream`, `arena` and `cancel` must
  /// outlive the link; what comes over the stream is read ahead from now on.
  static absl::StatusOr<std::unique_ptr<SharedLink>> Attach(RawCall& stream,
                                                            const SharedArena& arena,
                                                            absl::Time deadline,
                                                            CancelSwitch& cancel);

  /// Sends a message of the stream.
  absl::Status Send(const grpc::ByteBuffer& message);

  /// The next message of an answer; nothing if the answer comes over the stream. Stays awake for
  /// one that comes soon.
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Receive(absl::Time deadline);

  /// The answer to a push is there, so all of it was read.
  void OnAnswer() { taken_ = placed_; }

  /// Where the shard is to take these values of the arena from, once it has read most of what was
  /// placed before. They must stay until the push is answered, or the stream has ended.
  absl::StatusOr<SharedValues> Place(std::span<const float> values, absl::Time deadline);

  /// The `count` values of a buffer, to be copied and then tested with IsIntact. Valid until the
  /// next call of this object. INTERNAL if the shard has not given the buffer as it should have,
  /// RESOURCE_EXHAUSTED if it cannot be mapped.
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

  SharedLink(RawCall& stream, const SharedArena& arena, FileDescriptor socket, CancelSwitch& cancel)
      : stream_(stream), arena_(arena), socket_(std::move(socket)), cancel_(cancel) {}

  /// Waits for the next note and does what it says.
  absl::Status TakeNote(absl::Time deadline, AwakeWait::Clock::time_point awake_until);
  absl::Status Heed(ReceivedNote note);
  absl::StatusOr<ReceivedNote> NextNote(absl::Time deadline,
                                        AwakeWait::Clock::time_point awake_until);

  // Constant after construction.
  RawCall& stream_;
  const SharedArena& arena_;
  const FileDescriptor socket_;

  CancelSwitch& cancel_;
  uint64_t placed_ = 0;  // Chunks.
  uint64_t taken_ = 0;
  AwakeWait place_wait_;
  AwakeWait answer_wait_;
  std::map<uint64_t, Buffer> buffers_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARED_LINK_H_
