#ifndef SLIPSTREAM_SERVER_CORE_SHARD_EFFECTS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_EFFECTS_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/round.h"

namespace slipstream {

/// What the shard's core asks its shell to do: values, carried out in the order they were returned.

/// Make version `to` out of version `from` and the round's sum, which holds everything folded since
/// the last update; then say OnPublished(to).
struct Update {
  Version from{};
  Version to{};

  /// Nothing was contributed: `to` has the weights and the optimizer state of `from`.
  bool is_empty = false;
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

/// A parked call to be answered with this version.
struct Release {
  Ticket ticket{};
  Version version{};
  std::optional<RoundWork> work;
};

struct Effects {
  /// First these folds into the open round's sum, in this order …
  std::vector<Fold> folds;

  /// … then this update, which may be fused with the last of the folds.
  std::optional<Update> update;

  /// Independent of the two above.
  std::vector<Release> released;
};

/// The answer can be given now, from the published version named here.
struct Serve {
  Version version{};
  std::optional<RoundWork> work;
};

/// The answer waits; a later Effects::released names the ticket, unless OnCancelled comes first.
struct Park {
  Ticket ticket{};
};

/// A pull is refused.
struct Refuse {
  enum class Reason {
    kNoModel,  // Try again: no client has named the model yet.
    kWrongRun,
    kWrongShardMap,
    kFenced,
    kUnknownMember,  // Try again: the view that has this member is on its way.
    kTooManyParked,  // Try again later.
    kOutOfSequence,  // Before a push that has not come.
    kNoSuchSlot,
  };
  Reason reason{};
};

struct PullDecision {
  std::variant<Serve, Park, Refuse> outcome;

  /// A gradient computed from the answer will come.
  bool is_to_train = false;

  /// A worker that waits for a later version does not take part in the open round, which may have
  /// waited for that.
  Effects effects;
};

/// What became of a complete push.
struct PushDecision {
  PushReply reply;

  /// Set if the push joined a round: the shell keeps its payload under this name until folded.
  std::optional<PushId> retained;

  /// When the reply goes out and, if the push asked for weights, which version goes with it.
  /// Nothing: at once and without weights.
  std::optional<std::variant<Serve, Park>> answer;
  Effects effects;

  /// False for refusals and repetitions, which leave no trace in the push log.
  bool took_effect = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_EFFECTS_H_
