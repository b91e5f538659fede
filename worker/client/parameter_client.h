#ifndef SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/shard_group.h"
#include "worker/core/worker_core.h"

namespace slipstream {

/// The model as a training loop sees it: weights that come, gradients that go.
///
///   while (true) {
///     StatusOr<Step> step = client.Advance(weights);   // Weights to compute a gradient from.
///     … the batch that *step names, or a unit of work for it, or the end …
///     client.Push({.batch = …, .examples = …, .values = gradient}, weights);
///   }
///
/// It carries out what the worker's core decides: which shards to pull, from which rounds to excuse
/// itself, and under which sequence and base version a gradient goes out. Weights and gradients are
/// flat vectors of the whole model in the order of its layout.
///
/// Not thread-safe: one owner; other threads may throw its switch.
class ParameterClient {
 public:
  struct Options {
    Identity identity;

    /// host:port in the order of shards.
    std::vector<std::string> servers;
    ShardMap map;

    /// The consistency policy closes rounds of all members, and shard 0 names their batches.
    bool has_rounds = false;

    /// The staleness guard makes rounds wait for gradients on their way.
    bool releases_unused = false;
    ShardGroup::Options group;
  };

  /// A gradient: the mean over `examples` examples.
  struct Gradient {
    uint64_t batch = 0;
    uint32_t examples = 0;
    std::span<const float> values;
  };

  /// What to do with the weights that are there.
  struct Compute {
    uint64_t batch = 0;
  };
  struct AwaitUnit {};  // Call OnUnit or OnNoMoreUnits.
  struct Finished {};
  using Step = std::variant<Compute, AwaitUnit, Finished>;

  /// `cancel` must outlive the client; a failure of any call throws it.
  ParameterClient(const Options& options, Sleeper sleeper, CancelSwitch& cancel);

  /// Sends the initial weights to all shards.
  absl::Status Initialize(uint64_t grant, std::span<const float> weights);

  /// Does what is needed before the next gradient: pulls, and excuses. Returns at once where the
  /// last Push brought everything.
  absl::StatusOr<Step> Advance(std::span<float> weights);

  /// Pushes to all shards the gradient of the batch that Advance named, and takes the next weights
  /// in the same round trip. OUT_OF_RANGE if a shard found values that are not finite.
  absl::Status Push(const Gradient& gradient, std::span<float> weights);

  /// The batch that Advance named is done without a push, because its numbers are no gradient.
  void Skip() { core_.OnBatchSkipped(); }

  // Work, of policies without rounds.
  void OnUnit(const WorkUnit& unit) { core_.OnUnit(unit); }
  void OnNoMoreUnits() { core_.OnNoMoreUnits(); }
  void OnWorkEnds() { core_.OnWorkEnds(); }
  bool wants_unit() const { return core_.wants_unit(); }
  std::vector<UnitProgress> progress() const { return core_.progress(); }

  Version version(ShardId shard) const { return core_.version(shard); }

 private:
  absl::Status Pull(const WorkerCore::PullShards& action, std::span<float> weights);

  /// Sends one push to each of `shards` and tells the core of the answers.
  absl::Status Exchange(const std::vector<ShardId>& shards, const Gradient& gradient, bool pull,
                        std::span<float> weights);

  // Constant after construction.
  const Identity identity_;

  WorkerCore core_;
  ShardGroup group_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_
