#ifndef SLIPSTREAM_SERVER_CORE_SHARD_OUTPUT_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_OUTPUT_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/round.h"

namespace slipstream {

// What a shard's machine asks its shell to do: values, carried out in the order they were returned.

/// Make version `to` out of version `from` and the round's sum, which holds everything folded since
/// the last update; then say OnPublished(to).
struct Update {
  Version from{};
  Version to{};

  /// Nothing was contributed: `to` has the weights and the optimizer state of `from`.
  bool is_empty = false;

  /// The draft that was begun for the only push of the round is this update.
  bool is_drafted = false;
  float inverse_divisor = 1.0f;
  float learning_rate = 0.0f;

  /// Of the step, where a factor of the gradient would change nothing; decay is not scaled.
  float step_scale = 1.0f;
};

/// The update that one push would cause alone if it were complete now: of version `from`, by this
/// gradient multiplied by `weight`. A guess about the future, which anything may prove wrong.
struct Forecast {
  Version from{};
  float weight = 1.0f;
  float learning_rate = 0.0f;

  friend bool operator==(const Forecast&, const Forecast&) = default;
};

/// What the shard says at the header of a push.
struct PushAdmission {
  /// Set: the payload is not wanted, and this is the answer.
  std::optional<PushReply> refusal;

  /// Wanted or not, the push is of a member, and of a slot that a member has.
  bool is_of_member = false;

  /// Of an admitted push, its name from now on.
  PushId push{};

  /// Draft this update while the payload comes, if there is a buffer for it. There is one draft at
  /// a time. Orders to fold or to update end it, but for an update that is_drafted.
  std::optional<Forecast> draft;
};

/// Why a pull is refused.
enum class PullRefusal : uint8_t {
  kNoModel,  // Try again: no client has named the model yet.
  kWrongRun,
  kWrongShardMap,
  kFenced,
  kUnknownMember,  // Try again: the view that has this member is on its way.
  kMadeUpMember,   // No such view is.
  kTooManyParked,  // Try again later.
  kOutOfSequence,  // Before a push that has not come.
  kNoSuchSlot,
};

/// What a call is answered with.
struct ShardAnswer {
  CallId call{};

  /// Of a pull that is refused. Nothing else is set then.
  std::optional<PullRefusal> refusal;

  /// Of a push.
  std::optional<PushReply> push;

  /// Of a pull, and of a push that asks for them. The values are those of the version published
  /// last, which is the one named here.
  std::optional<WeightsHeader> weights;

  /// A gradient computed from the weights will come from this worker.
  std::optional<WorkerId> trainer;
};

/// What became of a complete push.
struct PushRecord {
  PushHeader header;
  PushReply reply;

  /// It used up its sequence. False of refusals and repetitions, which have no place in the log.
  bool took_effect = false;
};

struct ShardOutput {
  /// First these folds into the open round's sum, in this order …
  absl::InlinedVector<Fold, 1> folds;

  /// … then this update, which may be fused with the last of the folds.
  std::optional<Update> update;

  /// Independent of the two above. A call that is not answered waits.
  absl::InlinedVector<ShardAnswer, 1> answers;

  /// Of OnPush.
  std::optional<PushRecord> record;

  /// The payload of the push is kept until a fold names it; any other is let go now.
  bool keeps_payload = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_OUTPUT_H_
