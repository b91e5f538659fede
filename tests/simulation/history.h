#ifndef SLIPSTREAM_TESTS_SIMULATION_HISTORY_H_
#define SLIPSTREAM_TESTS_SIMULATION_HISTORY_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "server/core/coordinator/stop_conditions.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// The events that an observer outside the cluster saw, in order. The checkers use nothing else.

using Values = std::shared_ptr<const std::vector<float>>;

/// A version of one generation of a shard. Within a generation, versions count; a later generation
/// is newer.
struct GenerationVersion {
  Generation generation{};
  Version version{};
  friend auto operator<=>(const GenerationVersion&, const GenerationVersion&) = default;
};

/// A name that identifies a push for ever, unless its worker has already been told of a later
/// generation: then the shard refuses the push, and an earlier one may have had the name.
/// `generation` is that of the push's base.
struct PushKey {
  ShardId shard{};
  WorkerId worker{};
  Incarnation incarnation{};
  Generation generation{};
  Sequence sequence{};
  friend auto operator<=>(const PushKey&, const PushKey&) = default;
};

inline PushKey KeyOf(ShardId shard, const PushHeader& header) {
  return {.shard = shard,
          .worker = header.identity.worker,
          .incarnation = header.identity.incarnation,
          .generation = header.generation,
          .sequence = header.sequence};
}

/// A worker sends a push for the first time. `slot` is the position of the gradient's one-hot value
/// in each shard, or null for an excuse.
struct PushMade {
  PushKey push;
  std::optional<uint32_t> slot;
  Version base{};
  BatchRanges batches;
  uint32_t examples = 0;
  uint32_t pipeline_slot = 0;
};

/// A worker sends a push, for the first time or again: to the shard, or to its aggregator.
struct PushTried {
  PushKey push;
  bool has_values = false;
  bool is_to_aggregator = false;
  absl::Time time;
};

/// An aggregator has answered such a push, or the call has failed: then there is no outcome.
struct AggregatorAnswered {
  PushKey push;
  std::optional<PushOutcome> outcome;
  absl::Time time;
};

/// The complete payload of a push has reached a shard, or its aggregator, with these values.
struct GradientArrived {
  PushKey push;
  Version base{};
  BatchRanges batches;
  Values values;
};

/// A shard has decided the answer to a push, which may be a part of an aggregator's push; then
/// there is one event for each part. All but the first three fields are from the push's header.
struct PushDecided {
  PushKey push;
  PushReply reply;
  uint64_t call = 0;  // The number of the call that the push came in.
  WorkerClock clock{};
  bool rests = false;
  bool has_values = false;
  bool wants_weights = false;
  BatchRanges batches;

  /// Set if another part of the same aggregator's push came before.
  bool is_later_part = false;
};

/// A worker has read this answer.
struct PushAnswered {
  PushKey push;
  PushReply reply;
};

struct UpdateOrdered {
  ShardId shard{};
  Generation generation{};
  Version to{};
};

struct VersionPublished {
  ShardId shard{};
  Generation generation{};
  Version version{};
  Values weights;
};

/// A member whose clock is `clock` asks a shard for weights of version `asked` or later, to train
/// on. `sequence` is that of its next push, `call` the number of the call.
struct WeightsAsked {
  ShardId shard{};
  uint64_t call = 0;
  GenerationVersion asked;
  Identity trainer;
  Sequence sequence{};
  WorkerClock clock{};
};

/// A worker asks a shard for weights to train on. `sequence` is that of its next push in this
/// generation.
struct PullMade {
  ShardId shard{};
  Identity worker;
  Generation generation{};
  Sequence sequence{};
};

/// Weights leave a shard, in answer to the call with this number. `trainer` is the worker that will
/// compute a gradient from them, and `sequence` that of its next push.
struct WeightsServed {
  ShardId shard{};
  uint64_t call = 0;
  GenerationVersion version;
  GenerationVersion asked;
  std::optional<Identity> trainer;
  Sequence sequence{};
};

struct WeightsReceived {
  ShardId shard{};
  GenerationVersion version;
  Identity reader;
  Values weights;
};

/// A worker with free lanes begins a mini-batch of the pipeline's slot. `newest`: by shard, the
/// newest version that had come beside its pushes; 0 if none had.
struct BatchBegun {
  Identity worker;
  uint32_t pipeline_slot = 0;
  std::vector<GenerationVersion> newest;
};

/// A shard begins to save its state, as it is after all events so far.
struct SaveBegun {
  ShardId shard{};
  SavedVersion saved;
};

/// The process of a shard's server was killed, and what it did not save is lost. With a log,
/// nothing is lost that an observer has seen.
struct ServerKilled {
  ShardId shard{};
};

/// A shard goes on from a checkpoint, with these weights.
struct ShardReturned {
  ShardId shard{};
  Generation generation{};
  SavedVersion from;
  Values weights;
};

/// A shard's server has come back, and the shard goes on in the same generation from where its log
/// ends. These weights are those of its newest published version.
struct ShardWentOn {
  ShardId shard{};
  Generation generation{};
  Version version{};
  Values weights;
};

/// The coordinator, whose process was killed, goes on from its journal. The leases of all who were
/// live begin anew.
struct CoordinatorReturned {
  absl::Time killed;
  absl::Time time;
};

/// A shard has received orders.
struct OrdersTaken {
  ShardId shard{};
  View view;
  Phase phase{};
  uint32_t stage = 0;
};

/// The coordinator has accepted a call of a worker.
struct WorkerHeard {
  enum class What { kRegistered, kCalled, kLeft };
  What what = What::kCalled;
  Identity worker;
  absl::Time time;
};

struct ViewMade {
  View view;
  absl::Time time;

  /// A restored coordinator makes none before it has heard all servers.
  bool may_be_late = false;
};

struct PhaseMade {
  Phase phase{};
  absl::Time time;
};

/// The coordinator has decided, for this reason, that no more work is begun.
struct WorkEnded {
  EndReason reason{};
  absl::Time time;
};

/// The coordinator has accepted this measurement.
struct AccuracyTaken {
  double accuracy = 0;
};

/// A worker process has ended by itself.
struct WorkerEnded {
  Identity worker;
  absl::Status status;
};

/// The final weights as their measurer read them.
struct FinalReported {
  std::vector<GenerationVersion> versions;
  std::vector<float> weights;
};

using Event =
    std::variant<PushMade, PushTried, AggregatorAnswered, GradientArrived, PushDecided,
                 PushAnswered, UpdateOrdered, VersionPublished, PullMade, WeightsAsked,
                 WeightsServed, WeightsReceived, BatchBegun, SaveBegun, ServerKilled, ShardReturned,
                 ShardWentOn, CoordinatorReturned, OrdersTaken, WorkerHeard, ViewMade, PhaseMade,
                 WorkEnded, AccuracyTaken, WorkerEnded, FinalReported>;

/// A shard's own figures at the end.
struct ShardEnd {
  bool has_weights = false;  // Unless its process came back after the end of the run.
  Version published{};
  size_t calls_waiting = 0;
  size_t payloads_held = 0;
  uint64_t bytes_queued = 0;
  uint64_t gradients = 0;
  double mean_staleness = 0;
  double window_mean = 0;
  std::vector<uint64_t> histogram;
  std::deque<std::vector<Version>> clocks;  // Clocks of the last updates, newest last.
  std::vector<double> clock_means;
};

struct History {
  std::vector<Event> events;
  std::vector<ShardEnd> ends;  // By shard.
  bool is_finished = false;

  /// Orders of a core that its shell could not carry out.
  std::vector<std::string> broken_rules;

  /// The reason why the run is not over, or why it failed.
  std::string stuck;

  template <typename E>
  void Add(E event) {
    events.emplace_back(std::move(event));
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_HISTORY_H_
