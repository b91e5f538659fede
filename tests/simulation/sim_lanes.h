#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_LANES_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_LANES_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "tests/simulation/shard_lane.h"

namespace slipstream {

/// A lane to each shard, which makes calls one after another in the order in which they were asked
/// for, as ShardLanes does with threads.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimLanes {
 public:
  using Begin = std::function<void(ShardLane& lane, ShardLane::Done done)>;

  /// `lanes`: by shard.
  explicit SimLanes(std::vector<std::unique_ptr<ShardLane>> lanes);

  /// `begin` makes the call once those before it have been answered; then `done` is called, and may
  /// ask for more.
  void Call(ShardId shard, Begin begin, ShardLane::Done done);

  /// Gives up what is under way or waits, and calls nobody any more.
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

  std::vector<Lane> lanes_;  // By shard; as many for ever.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_LANES_H_
