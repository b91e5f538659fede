#ifndef SLIPSTREAM_SERVER_AGGREGATOR_UPLINK_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_UPLINK_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// A connection from an aggregator to its shard.
///
/// Not thread-safe: one owner.
class Uplink {
 public:
  virtual ~Uplink() = default;

  /// Sends a composite and waits for its answer, whose weights, if any, it writes to `weights`;
  /// their header has one of its `parts` for each of the composite's. Fails if the shard was not
  /// reached or had no memory for too long, or if all uplinks were stopped: then it is not known
  /// whether the composite counts. `values` and `weights` have as many values as the shard;
  /// `values` may be changed once this has returned.
  virtual absl::StatusOr<ExchangeAnswer> Exchange(const PushHeader& composite,
                                                  std::span<const float> values,
                                                  std::span<float> weights) = 0;

  /// Pulls the shard's newest weights to `weights` in the name of a worker of the group, and waits
  /// until the shard has published version `min_version` of its generation `min_generation`; but a
  /// shard that is in a later generation, or will have nothing newer, answers at once with what it
  /// has. Fails as Exchange does, or if the shard refuses the pull.
  virtual absl::StatusOr<WeightsHeader> Pull(const Identity& worker, Version min_version,
                                             Generation min_generation,
                                             std::span<float> weights) = 0;
};

/// Makes the uplinks of an aggregator.
///
/// Thread-safe in every implementation. Must outlive the uplinks that it makes.
class Uplinks {
 public:
  virtual ~Uplinks() = default;

  /// Has uplinks go to the shard's server at this address, host:port, from their next try on: it
  /// may have come back elsewhere.
  virtual void Follow(const std::string& address) = 0;

  /// Returns an uplink to the shard's server at `address`, host:port. It connects when it is used.
  virtual std::unique_ptr<Uplink> Make(const std::string& address, uint64_t run,
                                       const ShardMap& map) = 0;

  /// Ends the calls of all uplinks, also those that begin later.
  virtual void Stop() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_UPLINK_H_
