#ifndef SLIPSTREAM_SERVER_SERVICE_PUSH_RECEIVER_H_
#define SLIPSTREAM_SERVER_SERVICE_PUSH_RECEIVER_H_

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>
#include <variant>

#include "common/wire/chunk_wire.h"
#include "server/service/latest_calls.h"
#include "server/service/push_assembly.h"
#include "server/service/shard_engine.h"
#include "server/service/shared_path.h"

namespace slipstream {

/// Turns the messages of a push stream into complete pushes or refusals. A refused push's remaining
/// chunks are read and thrown away, so that the stream stays usable; a stream that breaks the
/// framing is answered once more and then has to end.
///
/// Not thread-safe: one owner, the call that reads the stream.
class PushReceiver {
 public:
  /// `call`: told whose pushes come. `shared`: where values may lie instead of in messages. Either
  /// may be null.
  explicit PushReceiver(ShardEngine& engine, LatestCalls::Entry* call = nullptr,
                        SharedPath* shared = nullptr)
      : engine_(engine), call_(call), shared_(shared) {}

  ~PushReceiver() { Abandon(); }
  PushReceiver(const PushReceiver&) = delete;
  PushReceiver& operator=(const PushReceiver&) = delete;

  struct NeedMore {
    uint64_t taken_bytes = 0;  // Of values, wherever they lay.
    bool awaits_seal = false;  // As PushAssembly::awaits_seal.
  };
  struct Complete {
    PushAssembly push;
  };
  struct Refused {
    PushReply reply;

    /// The stream cannot be followed any further.
    bool ends_stream = false;
  };
  /// No part of a push. What it asks for is up to the owner; without a place for shared values it
  /// does not come.
  struct Beside {
    SharedMemoryRequest request;
  };
  using Outcome = std::variant<NeedMore, Complete, Refused, Beside>;

  /// What the message makes of the push. Fails if it is no PushChunk.
  absl::StatusOr<Outcome> OnMessage(const grpc::ByteBuffer& message);

  /// The stream ends here: gives back what an incomplete push had been admitted with, before anyone
  /// hears of the end. Returns what is missing, for people.
  std::string Abandon();

 private:
  /// Values of a refused push still to come, and the answer they end with.
  struct Discarding {
    PushReply reply;
    uint64_t values_left = 0;
  };

  /// `unread`: where the values of the chunk are, if not in it.
  Outcome OnChunk(PushChunk chunk, const std::optional<UnreadValues>& unread);
  Outcome OnSharedChunk(PushChunk chunk);
  Outcome OnRequest(const SharedMemoryRequest& request);
  Outcome Begin(const PushHeader& header);
  Outcome Take(PushChunk chunk, const std::optional<UnreadValues>& unread);
  Outcome Discard(uint64_t values);
  Outcome BrokenFraming(std::string message);

  ShardEngine& engine_;
  LatestCalls::Entry* const call_;
  SharedPath* const shared_;
  std::optional<PushAssembly> assembly_;
  std::optional<Discarding> discarding_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_PUSH_RECEIVER_H_
