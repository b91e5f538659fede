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

/// The worker's end of the shared memory of one exchange stream: the worker's arena, from which the
/// shard reads the values of pushes, and the shard's buffers, from which the worker reads the
/// answers.
///
/// Once attached, the stream's messages go over a local socket, which takes a fraction of the time.
/// Files, and notes that values were read, go over the same socket. The socket closes when the
/// shard's end goes away, and every wait checks the stream from time to time, so nobody waits for a
/// dead peer. Deadlines are times of SteadyNow.
///
/// Not thread-safe: one owner, the stream's; other threads may throw the CancelSwitch.
class SharedLink {
 public:
  /// Agrees on shared memory. FAILED_PRECONDITION says why there is none; the stream can still be
  /// used. After any other failure it cannot. `stream`, `arena` and `cancel` must outlive the link.
  /// From now on the link reads ahead on the stream.
  static absl::StatusOr<std::unique_ptr<SharedLink>> Attach(RawCall& stream,
                                                            const SharedArena& arena,
                                                            absl::Time deadline,
                                                            CancelSwitch& cancel);

  /// Sends a message of the stream.
  absl::Status Send(const grpc::ByteBuffer& message);

  /// Returns the next message of an answer; nothing if the answer comes over the stream. Polls
  /// instead of sleeping while it expects a message soon.
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Receive(absl::Time deadline);

  /// Notes that the answer to a push has arrived, so the shard has read all values of the push.
  void OnAnswer() { taken_ = placed_; }

  /// Returns where the shard finds these values of the arena, once it has read most of the chunks
  /// placed before. The values must stay unchanged until the push is answered or the stream has
  /// ended.
  absl::StatusOr<SharedValues> Place(std::span<const float> values, absl::Time deadline);

  /// Returns the `count` values of a buffer. The caller copies them and then checks IsIntact. Valid
  /// until the next call of this object. INTERNAL if the shard has not provided the buffer
  /// correctly, RESOURCE_EXHAUSTED if it cannot be mapped.
  absl::StatusOr<std::span<const float>> Find(const SharedWeights& weights, size_t count,
                                              absl::Time deadline);

  /// True if the copied values are those that the shard answered with. False if the shard took the
  /// buffer back, as it does if a reader takes too long.
  bool IsIntact(const SharedWeights& weights) const;

 private:
  struct Buffer {
    FileDescriptor file;
    SharedMapping mapping;  // Null until its values are asked for; then the file is closed.
  };

  SharedLink(RawCall& stream, const SharedArena& arena, FileDescriptor socket, CancelSwitch& cancel)
      : stream_(stream), arena_(arena), socket_(std::move(socket)), cancel_(cancel) {}

  /// Waits for the next note and carries it out.
  absl::Status TakeNote(absl::Time deadline, AwakeWait::Clock::time_point awake_until);
  absl::Status Heed(ReceivedNote note);
  absl::StatusOr<ReceivedNote> NextNote(absl::Time deadline,
                                        AwakeWait::Clock::time_point awake_until);

  // Constant after construction.
  RawCall& stream_;
  const SharedArena& arena_;
  const FileDescriptor socket_;

  CancelSwitch& cancel_;
  uint64_t placed_ = 0;  // The number of chunks placed.
  uint64_t taken_ = 0;
  AwakeWait place_wait_;
  AwakeWait answer_wait_;
  std::map<uint64_t, Buffer> buffers_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARED_LINK_H_
