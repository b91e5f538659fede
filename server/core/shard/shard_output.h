#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_OUTPUT_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/tensor_set.h"
#include "server/core/shard/round.h"

namespace slipstream {

// The values by which a shard's machine tells its shell what to do. The shell carries them out in
// the order in which they were returned.

/// An instruction to make version `to` out of version `from` and the round's sum, which holds
/// everything folded since the last update, and then to call OnPublished(to).
struct Update {
  Version from{};
  Version to{};

  /// Set if nothing was contributed: `to` has the weights and the optimizer state of `from`.
  bool is_empty = false;

  /// Set if the draft that was begun for the only push of the round is this update.
  bool is_drafted = false;
  float inverse_divisor = 1.0f;
  float learning_rate = 0.0f;

  /// The factor of the step, for rules where a factor of the gradient would change nothing. Weight
  /// decay is not scaled.
  float step_scale = 1.0f;

  /// The tensors that no gradient of the round is for. They, and their state, stay as they are.
  TensorSet absent = {};
};

/// The update that one push would cause alone if it were complete now: version `from` updated by
/// this gradient multiplied by `weight`. It is a guess that any later event may prove wrong.
struct Forecast {
  Version from{};
  float weight = 1.0f;
  float learning_rate = 0.0f;

  friend bool operator==(const Forecast&, const Forecast&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.from, self.weight, self.learning_rate);
  }
};

/// The shard's decision at the header of a push.
struct PushAdmission {
  /// The answer to the push. Set if the payload is not wanted.
  std::optional<PushReply> refusal;

  /// Set if the push, wanted or not, is from a member and names a slot that members have; or if all
  /// of its parts are and do.
  bool is_of_member = false;

  /// The name of the push from now on. Set if it is admitted.
  PushId push{};

  /// The update to draft while the payload comes, if there is a buffer for it. There is one draft
  /// at a time. An instruction to fold or to update ends it, unless the update is_drafted.
  std::optional<Forecast> draft;
};

/// Why a pull is refused.
enum class PullRefusal : uint8_t {
  kNoModel,  // Try again: no client has named the model yet.
  kWrongRun,
  kWrongShardMap,
  kFenced,
  kUnknownMember,  // Try again: the view that has this member is on its way.
  kMadeUpMember,   // The coordinator does not know this member.
  kTooManyParked,  // Try again later.
  kOutOfSequence,  // It follows a push that has not come.
  kNoSuchSlot,
  kLaterGeneration,  // Try again: the shard is to return from a checkpoint, and has not done so
                     // yet.
  kLagged,  // The shard has gone on from the state that was asked for, and does not keep it.
};

/// The answer to a call.
struct ShardAnswer {
  CallId call{};

  /// Why the pull is refused. If it is set, nothing else is.
  std::optional<PullRefusal> refusal;

  /// The reply to a push. Set if the call is a push.
  std::optional<PushReply> push;

  /// The header of the weights. Set for a pull, and for a push that asks for weights. The values
  /// are those of the version that the header names: the newest published one, or another that is
  /// kept.
  std::optional<WeightsHeader> weights;

  /// The workers that will push a gradient computed from the weights; several only in the answer to
  /// a push that combines those of several.
  absl::InlinedVector<WorkerId, 1> trainers;
};

/// The outcome of a complete push.
struct PushRecord {
  PushHeader header;
  PushReply reply;

  /// Set if the push used up its sequence. Not set for refusals and repetitions, which the push log
  /// does not list.
  bool took_effect = false;
};

struct ShardOutput {
  /// The folds into the open round's sum. They come first, in this order.
  absl::InlinedVector<Fold, 1> folds;

  /// The update. It comes after the folds, and may be fused with the last of them.
  std::optional<Update> update;

  /// The answers. They are independent of folds and update. A call that is not answered waits.
  absl::InlinedVector<ShardAnswer, 1> answers;

  /// The pulls of readers to end, because these take longer than their version can be kept.
  /// OnPullDone has to follow for each.
  std::vector<CallId> lagged;

  /// The outcome of the push. Set by OnPush.
  std::optional<PushRecord> record;

  /// Set if the payload of the push is kept until a fold names it. Otherwise it is freed now.
  bool keeps_payload = false;

  /// Set if the shell is to save the state as it is after this event, with the values of version
  /// decided() once they are made. The open round has no contributions then.
  bool saves = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_OUTPUT_H_
