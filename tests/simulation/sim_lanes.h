#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_LANES_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_LANES_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "tests/simulation/shard_lane.h"

namespace slipstream {

/// One lane for each shard, which makes calls one after another in the order in which they were
/// requested.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimLanes {
 public:
  using Begin = std::function<void(ShardLane& lane, ShardLane::Done done)>;

  /// `lanes` is ordered by shard.
  explicit SimLanes(std::vector<std::unique_ptr<ShardLane>> lanes);

  /// Queues a call. `begin` makes it once all earlier calls have been answered. Then `done` is
  /// called, which may queue more calls.
  void Call(ShardId shard, Begin begin, ShardLane::Done done);

  /// Gives up current and queued calls. No callback is called any more.
  void Close();

 private:
  struct Waiting {
    Begin begin;
    ShardLane::Done done;
  };
  struct Lane {
    std::unique_ptr<ShardLane> shard;
    std::deque<Waiting> calls;
  };

  void BeginNext(Lane& lane);

  std::vector<Lane> lanes_;  // By shard; the number is constant.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_LANES_H_
