#ifndef SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_
#define SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// The worker's side of the protocol: which weights it holds, which push comes next on each shard,
/// and what to do next.
///
/// Answers of shards and units of work go in; Next() says what the shell has to do, which it does
/// and then reports here. There are two sources of work. With rounds (hardsync), shard 0 names a
/// mini-batch with its weights, and the worker owes a push to every round of every shard: it steps
/// with all shards at one version, and excuses itself from rounds that it cannot or need not fill.
/// Without rounds, the coordinator hands out units, and shards may be at any versions.
///
/// Invariants:
///  - sequences of a shard go up by one with each push that used one up, and never otherwise
///  - with rounds, a batch is named only while all shards are held at one version
///
/// Not thread-safe: one owner, which serialises calls.
class WorkerCore {
 public:
  struct Options {
    uint32_t shards = 1;

    /// Shard 0 hands out work, round by round.
    bool has_rounds = false;
  };

  struct ShardPull {
    ShardId shard{};
    Version min_version{};
    friend bool operator==(const ShardPull&, const ShardPull&) = default;
  };

  /// Pull the weights of these shards, to train on.
  struct PullShards {
    std::vector<ShardPull> pulls;
    friend bool operator==(const PullShards&, const PullShards&) = default;
  };

  /// Push no values to these shards, and take the weights that they answer with.
  struct ExcuseShards {
    std::vector<ShardId> shards;
    friend bool operator==(const ExcuseShards&, const ExcuseShards&) = default;
  };

  /// Compute the gradient of this mini-batch and push it to every shard; then OnBatchDone.
  struct ComputeBatch {
    uint64_t batch = 0;

    /// Take weights with the answers: there is, or may be, more to compute.
    bool pull = true;
    friend bool operator==(const ComputeBatch&, const ComputeBatch&) = default;
  };

  /// Wait for the unit asked for.
  struct AwaitUnit {
    friend bool operator==(const AwaitUnit&, const AwaitUnit&) = default;
  };

  /// Nothing is left for this worker.
  struct Finished {
    friend bool operator==(const Finished&, const Finished&) = default;
  };

  using Action = std::variant<PullShards, ExcuseShards, ComputeBatch, AwaitUnit, Finished>;

  /// REQUIRES: options.shards > 0.
  explicit WorkerCore(const Options& options);

  Action Next() const;

  /// A push to `shard` was answered, for good. The weights held of it are used up; OnWeights
  /// follows if the answer brought others. Fails, as the worker must, if the push was refused in a
  /// way that repeating cannot mend. REQUIRES: the outcome is not one to send again.
  absl::Status OnReply(ShardId shard, const PushReply& reply);

  /// `shard` sent weights. Fails if its clock went back, or if it owes work and names none.
  absl::Status OnWeights(ShardId shard, const WeightsHeader& header);

  /// Every shard has answered the push of the batch that Next() named.
  void OnBatchDone();

  void OnUnit(const WorkUnit& unit) { units_.Add(unit); }
  void OnNoMoreUnits() { units_.Close(); }

  /// A unit should be asked for now, to be there when it is needed.
  bool wants_unit() const { return !options_.has_rounds && units_.wants_unit(); }
  std::vector<UnitProgress> progress() const { return units_.progress(); }

  /// Of the next push to `shard`.
  Sequence sequence(ShardId shard) const { return shards_.at(Value(shard)).sequence; }

  /// Of the weights held, or last held.
  Version version(ShardId shard) const { return shards_.at(Value(shard)).version; }

 private:
  struct ShardState {
    Sequence sequence{1};
    Version version{};
    bool is_held = false;  // Weights of `version` are there, and no push has used them.
  };

  std::optional<Action> PullWhatIsMissing() const;
  Action NextOfRounds() const;
  Action NextOfUnits() const;

  // Constant after construction.
  const Options options_;

  std::vector<ShardState> shards_;
  std::optional<RoundWork> work_;  // Of rounds: what shard 0 named with the weights held of it.
  UnitQueue units_;                // Of policies without.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_
