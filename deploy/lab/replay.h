#ifndef SLIPSTREAM_DEPLOY_LAB_REPLAY_H_
#define SLIPSTREAM_DEPLOY_LAB_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/shard_map.h"
#include "common/model/net_shapes.h"
#include "common/settings/run_spec.h"
#include "deploy/lab/compute_pool.h"
#include "deploy/lab/event_queue.h"
#include "deploy/lab/push_lines.h"
#include "deploy/lab/virtual_server.h"
#include "server/core/orders.h"
#include "worker/client/push_encoders.h"
#include "worker/data/dataset.h"
#include "worker/training/measures.h"

namespace slipstream {

/// Redoes a real run from its settings and push logs: the same gradients, from the same versions of
/// the weights, are pushed to production's Shards in the same order. What a gradient is follows
/// from its mini-batch and the versions that it was computed from, which the logs name; what the
/// shards make of it follows from the order. So the weights are those of the real run, bit for bit.
///
/// With other settings of the optimizer it answers what these would have done with the same order
/// of events: which pushes count, and in which round, is then as the logs say.
///
/// Not thread-safe: one owner.
class Replay {
 public:
  struct Options {
    /// The run's settings, changed or not.
    RunSpec run;

    /// The lines of the push log of each shard.
    std::vector<std::vector<PushLine>> logs;

    /// How many threads compute. > 0.
    uint32_t threads = 1;
  };

  struct Result {
    std::vector<float> weights;
    uint64_t pushes = 0;

    /// Over the gradients of all shards.
    double mean_staleness = 0;
    std::vector<Version> versions;  // By shard.
    std::optional<TestMeasures> measures;
  };

  /// FAILED_PRECONDITION says why the run cannot be redone from what there is: what its settings
  /// have, or which lines are missing.
  static absl::Status Check(const Options& options);

  /// `data` must outlive the replay. REQUIRES: Check(options) is OK.
  static absl::StatusOr<std::unique_ptr<Replay>> Make(Options options, const DataSplits& data);

  /// Redoes the whole run. Fails with CANCELLED once `goes_on`, which is told how many lines are
  /// done, returns false; with FAILED_PRECONDITION if a line cannot follow, or once a shard decides
  /// otherwise than the log says; with DivergedError if a gradient is not finite.
  absl::StatusOr<Result> Run(const std::function<bool(uint64_t done, uint64_t lines)>& goes_on);

 private:
  /// A push, by worker, incarnation, mini-batches and how often it was there before: its lines in
  /// the logs of all shards belong together.
  using Key = std::tuple<WorkerId, Incarnation, uint64_t, uint64_t>;

  struct Push {
    std::vector<std::optional<Version>> bases;  // By shard; nothing if its log has no such push.
    BatchRanges batches;
    bool counts = false;    // At any shard.
    size_t lines_left = 0;  // Those that have yet to be redone.
    ShardWeights weights;   // What it is computed from, as far as there is.
    std::shared_ptr<ComputePool::Job> job;
    ComputedGradient computed;
    std::vector<float> gradient;
  };

  struct ShardReplay {
    std::unique_ptr<VirtualServer> server;
    std::vector<Key> keys;  // By line.
    size_t next = 0;        // The next line.
    std::map<Version, Weights> versions;
    std::map<Version, uint64_t> uses;  // How many pushes have yet to be computed from a version.
    std::map<std::pair<WorkerId, Incarnation>, uint64_t> clocks;
  };

  Replay(Options options, const DataSplits& data, NetShapes net, ShardMap map,
         std::vector<std::unique_ptr<ComputeLane>> lanes);

  void Index();

  /// FAILED_PRECONDITION if it is not known what a gradient was computed from.
  absl::Status CheckBases() const;

  /// Says which line cannot follow.
  absl::Status WhyStuck() const;
  absl::Status Begin();
  void PullFirst(ShardId shard);

  /// Begins to compute the gradients of the next lines whose weights are there.
  void ComputeAhead();
  bool MayCompute(const Push& push) const;
  void Compute(Push& push);
  absl::Status PushNext(ShardId shard);
  std::optional<ReceivedValues> ValuesOf(WorkerId worker, ShardId shard,
                                         std::span<const float> gradient);

  /// Returns the worker's encoder for the shard; null without a codec.
  PushEncoder* EncoderOf(WorkerId worker, ShardId shard);
  absl::Status CheckReply(ShardId shard, const PushLine& line, const PushReply& reply) const;

  /// Keeps the version that the shard has made if a push is computed from it.
  void KeepNewest(ShardId shard);
  absl::Status End();

  // Constant after construction.
  const Options options_;
  const DataSplits& data_;
  const NetShapes net_;
  const ShardMap map_;

  EventQueue queue_;
  std::vector<ShardReplay> shards_;
  std::map<Key, Push> pushes_;
  std::map<WorkerId, PushEncoders> encoders_;
  ServerOrders orders_;
  ComputePool pool_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_REPLAY_H_
