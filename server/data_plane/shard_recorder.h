#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_RECORDER_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_RECORDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/values_codec.h"

namespace slipstream {

/// Takes down what a shard is told, in the order in which it is told: a log (ShardLog) or, in
/// tests, a list.
///
/// Not thread-safe: the shard's owner calls it, with the shard's lock.
class ShardRecorder {
 public:
  virtual ~ShardRecorder() = default;

  /// Adds an event. `payload` is that of a push, shared with the shard; else it is empty. The call
  /// does no I/O. Events before the first BeginSegment are not wanted, and are dropped.
  virtual void Record(std::string event,
                      std::vector<std::shared_ptr<const ReceivedValues>> payload) = 0;

  /// Begins a new segment of the log, at the event that orders a checkpoint: whoever goes on from
  /// that checkpoint begins with this segment. Returns its number, which is higher than those
  /// before, and above 0.
  virtual uint64_t BeginSegment() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_RECORDER_H_
