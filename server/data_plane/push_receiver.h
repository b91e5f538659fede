#ifndef SLIPSTREAM_SERVER_DATA_PLANE_PUSH_RECEIVER_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_PUSH_RECEIVER_H_

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/wire/chunk_wire.h"
#include "server/data_plane/call_guard.h"
#include "server/data_plane/data_plane_engine.h"
#include "server/data_plane/push_framing.h"
#include "server/data_plane/shared_memory_channel.h"
#include "server/listen/caller.h"

namespace slipstream {

/// Reads the messages of a push stream for a shard or an aggregator: finds the values that a chunk
/// names, and passes headers and abandoned pushes on to the engine. PushFraming makes pushes of the
/// chunks.
///
/// Not thread-safe: one owner, the call that reads the stream.
class PushReceiver {
 public:
  /// `guard` is told whose pushes come, and `shared` is where values may be instead of in messages.
  /// Either may be null.
  explicit PushReceiver(DataPlaneEngine& engine, CallGuard* guard = nullptr,
                        SharedMemoryChannel* shared = nullptr)
      : engine_(engine), guard_(guard), shared_(shared) {}

  ~PushReceiver() { Abandon(); }
  PushReceiver(const PushReceiver&) = delete;
  PushReceiver& operator=(const PushReceiver&) = delete;

  using Outcome = PushFraming::Outcome;

  /// Takes a message and returns how far its push has come; PushFraming::Beside only if there is a
  /// place for shared values. Fails if the message is not a PushChunk, or if the caller may not
  /// push for the worker that a header names.
  absl::StatusOr<Outcome> OnMessage(const grpc::ByteBuffer& message);

  /// Ends the stream: gives back the memory of an incomplete push, before anyone hears of the end.
  /// Returns for people what is missing.
  std::string Abandon();

 private:
  Outcome OnChunk(PushChunk chunk, const std::optional<UnreadValues>& unread);
  Outcome OnSharedChunk(PushChunk chunk);
  BegunPush Begin(const PushHeader& header);

  /// Returns PERMISSION_DENIED if the caller may not send this push.
  absl::Status MaySend(const PushHeader& header);
  Outcome BrokenFraming(std::string message);

  DataPlaneEngine& engine_;
  CallGuard* const guard_;
  SharedMemoryChannel* const shared_;
  PushFraming framing_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_PUSH_RECEIVER_H_
