#ifndef SLIPSTREAM_SERVER_DATA_PLANE_PUSH_FRAMING_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_PUSH_FRAMING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/functional/function_ref.h"
#include "common/local/shared_arena.h"
#include "common/wire/chunk_wire.h"
#include "server/data_plane/push_assembly.h"
#include "server/data_plane/shard.h"

namespace slipstream {

/// Makes complete pushes, or refusals, out of the chunks of a stream, whatever brings them. The
/// values of a refused push are skipped, so that the stream stays usable. A stream that breaks the
/// framing is answered once more and then has to end. Between two pushes a request may come.
///
/// It knows no shard: its owner passes the headers on, and gives back what Abandon returns.
///
/// Not thread-safe: one owner.
class PushFraming {
 public:
  struct NeedMore {
    uint64_t taken_bytes = 0;     // Bytes of values taken, from a message or shared memory.
    bool awaits_trailer = false;  // As PushAssembly::awaits_trailer.
  };
  struct Complete {
    PushAssembly push;
  };
  struct Refused {
    PushReply reply;

    /// Set if the rest of the stream cannot be understood: Abandon has to follow.
    bool ends_stream = false;
  };

  /// A chunk that is not part of a push: a request that the owner carries out.
  struct Beside {
    SharedMemoryRequest request;
  };
  using Outcome = std::variant<NeedMore, Complete, Refused, Beside>;

  /// Takes a chunk and returns how far its push has come. `unread`: where the values are if they
  /// are not in the chunk. `begin` is called for each header, before any of the values behind it is
  /// taken.
  Outcome OnChunk(PushChunk chunk, const std::optional<UnreadValues>& unread,
                  absl::FunctionRef<BegunPush(const PushHeader&)> begin);

  /// Returns the refusal for a stream whose framing is broken in another way. The shard still has
  /// to name its version in it.
  static Refused Broken(std::string message);

  /// Returns whether no push is under way.
  bool is_between() const { return !assembly_.has_value() && !discarding_.has_value(); }

  /// Ends the stream, or gives it up. Returns the push that was admitted and will not be complete.
  std::optional<PushAssembly> Abandon();

 private:
  /// The values of a refused push that are still to come, and the answer that follows them.
  struct Discarding {
    PushReply reply;
    uint64_t values_left = 0;
  };

  Outcome Begin(const PushHeader& header, BegunPush begun);
  Outcome Take(PushChunk chunk, const std::optional<UnreadValues>& unread);
  Outcome Discard(uint64_t values);

  std::optional<PushAssembly> assembly_;
  std::optional<Discarding> discarding_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_PUSH_FRAMING_H_
