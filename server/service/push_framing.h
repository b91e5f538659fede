#ifndef SLIPSTREAM_SERVER_SERVICE_PUSH_FRAMING_H_
#define SLIPSTREAM_SERVER_SERVICE_PUSH_FRAMING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/functional/function_ref.h"
#include "common/local/shared_arena.h"
#include "common/wire/chunk_wire.h"
#include "server/service/push_assembly.h"
#include "server/service/shard.h"

namespace slipstream {

/// Makes complete pushes, or refusals, of the chunks of a stream, whatever brings them. The values
/// of a refused push are counted off, so that the stream stays usable; a stream that breaks the
/// framing is answered once more and then has to end.
///
/// Knows no shard: whoever owns it passes on the headers, and gives back what Abandon returns.
///
/// Not thread-safe: one owner.
class PushFraming {
 public:
  struct NeedMore {
    uint64_t taken_bytes = 0;  // Of values, wherever they lay.
    bool awaits_seal = false;  // As PushAssembly::awaits_seal.
  };
  struct Complete {
    PushAssembly push;
  };
  struct Refused {
    PushReply reply;

    /// The stream cannot be followed any further: Abandon has to follow.
    bool ends_stream = false;
  };
  using Outcome = std::variant<NeedMore, Complete, Refused>;

  /// What the chunk makes of the push. `unread`: where its values are, if they are not in it.
  /// `begin` is asked about each header in its place, before any of the values behind it is taken.
  Outcome OnChunk(PushChunk chunk, const std::optional<UnreadValues>& unread,
                  absl::FunctionRef<BegunPush(const PushHeader&)> begin);

  /// Something else has broken the framing.
  static Refused Broken(std::string message);

  /// No push is under way.
  bool is_between() const { return !assembly_.has_value() && !discarding_.has_value(); }

  /// The stream ends here, or cannot be followed. Returns the push that was admitted and will not
  /// be complete.
  std::optional<PushAssembly> Abandon();

 private:
  /// Values of a refused push still to come, and the answer they end with.
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

#endif  // SLIPSTREAM_SERVER_SERVICE_PUSH_FRAMING_H_
