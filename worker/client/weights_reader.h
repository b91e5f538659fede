#ifndef SLIPSTREAM_WORKER_CLIENT_WEIGHTS_READER_H_
#define SLIPSTREAM_WORKER_CLIENT_WEIGHTS_READER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/shard_group.h"
#include "worker/client/shard_options.h"

namespace slipstream {

/// Reads the weights of a run without taking part in it, for evaluation.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class WeightsReader {
 public:
  /// Describes the weights that were read.
  struct Reading {
    /// The version of each shard.
    std::vector<Version> versions;

    /// The number of examples whose gradients are part of the weights, at the shard that has seen
    /// the fewest.
    uint64_t examples = 0;
  };

  /// `identity` is that of a member, because shards reserve memory for members. `cancel` must
  /// outlive the reader.
  WeightsReader(const Identity& identity, const std::vector<std::string>& servers,
                const ShardMap& map, const ShardOptions& options, const Sleeper& sleeper,
                CancelSwitch& cancel)
      : identity_(identity), group_(servers, map, options, sleeper, cancel) {}

  /// Fills `weights` and returns what was read, as WeightsReading decides.
  absl::StatusOr<Reading> Read(std::span<float> weights);

 private:
  const Identity identity_;
  ShardGroup group_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_WEIGHTS_READER_H_
