#ifndef SLIPSTREAM_WORKER_CLIENT_NEWEST_WEIGHTS_H_
#define SLIPSTREAM_WORKER_CLIENT_NEWEST_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/first_failure.h"
#include "worker/client/retries.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_group.h"
#include "worker/client/shard_options.h"

namespace slipstream {

/// Follows the versions of all shards beside a worker's pushes, so that each mini-batch can begin
/// with the newest weights there are (Rudra-adv*, arXiv 1509.04210).
///
/// Each shard has a lane, with a thread and a connection of its own. The lane asks for a version
/// newer than its last, or one of a later generation, and the shard answers once there is one; or
/// in its place the aggregator of the worker's group, which then has asked the shard for the whole
/// group. The values come into a buffer that nobody else reads; when they are complete, it is
/// swapped with the buffer that Take copies from. So Take waits for a transfer only where no
/// weights are held yet, and takes no values of two versions of one shard. Both buffers together
/// are as large as two models.
///
/// Not thread-safe: one owner, which calls Take and Rest.
class NewestWeights {
 public:
  /// The weights of one shard, by their version.
  using Held = std::pair<Generation, Version>;

  /// The weights of one shard that were taken.
  struct Taken {
    ShardId shard{};
    WeightsHeader header;
  };

  /// `identity`: the worker's, by which it pulls as a member that does not train. `servers`: the
  /// addresses in the order of the map's shards. `cancel` must outlive this object.
  /// `aggregators`: those of the worker's group, in the same order; empty if it has none.
  NewestWeights(const Identity& identity, const std::vector<std::string>& servers,
                const ShardMap& map, const ShardOptions& options, const Sleeper& sleeper,
                CancelSwitch& cancel, const std::vector<std::string>& aggregators = {});

  /// Ends the pulls under way.
  ~NewestWeights();
  NewestWeights(const NewestWeights&) = delete;
  NewestWeights& operator=(const NewestWeights&) = delete;

  /// Copies the newest complete weights of each shard into `weights`, which is as large as the
  /// model and in its order, unless they are as old as `held` (by shard) or older. Where none are
  /// held, it waits for the first. Returns what was copied. The lanes start with the first call.
  /// Fails with the first failure of any lane, which ends the calls of all.
  absl::StatusOr<std::vector<Taken>> Take(const std::vector<std::optional<Held>>& held,
                                          std::span<float> weights);

  /// Lets no lane begin another pull before the next Take.
  void Rest();

 private:
  /// The newest complete weights of one shard.
  struct Newest {
    std::optional<WeightsHeader> header;  // Absent before the first have come.
    std::vector<float> values;
    bool is_read = false;  // The owner copies the values, and the lane may not change them.
  };

  static Held Of(const WeightsHeader& header) { return {header.generation, header.version}; }

  /// Lets the owner read the shard's newest weights, if they are newer than `held`; else returns
  /// null. Waits for the first if none are held. The lane swaps nothing until EndReading.
  absl::StatusOr<const Newest*> BeginReading(ShardId shard, const std::optional<Held>& held);
  void EndReading(ShardId shard);

  // These run in a lane.
  absl::Status Follow(ShardClient& shard);
  PullRequest RequestFor(const ShardClient& shard) const;

  /// Makes complete weights of the shard its newest, by swapping them with `arrived`. Returns
  /// whether they are newer than the last.
  bool Keep(ShardId shard, const WeightsHeader& header, std::vector<float>& arrived);

  /// Waits until the lane may pull. A lane whose last pull brought nothing new waits for the next
  /// Take after number `takes`. Returns false if the lane is to end.
  bool AwaitTurn(bool has_news, uint64_t takes);

  uint64_t takes() const;

  // Constant after construction.
  const Identity identity_;

  bool has_started_ = false;  // The owner's.

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Newest> newest_ ABSL_GUARDED_BY(mutex_);  // By shard.
  uint64_t takes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_resting_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  FirstFailure failure_ ABSL_GUARDED_BY(mutex_);

  CancelSwitch cancel_;
  ShardGroup group_;  // Last, so that its lanes end before the members that they use.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_NEWEST_WEIGHTS_H_
