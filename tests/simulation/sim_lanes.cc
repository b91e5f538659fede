#include "tests/simulation/sim_lanes.h"

#include <utility>

namespace slipstream {

SimLanes::SimLanes(std::vector<std::unique_ptr<ShardLane>> lanes) {
  for (std::unique_ptr<ShardLane>& lane : lanes) lanes_.push_back({std::move(lane), {}});
}

void SimLanes::Close() {
  for (Lane& lane : lanes_) {
    lane.shard->Close();
    lane.calls.clear();
  }
}

void SimLanes::Call(ShardId shard, Begin begin, ShardLane::Done done) {
  Lane& lane = lanes_[Value(shard)];
  lane.calls.push_back({std::move(begin), std::move(done)});
  BeginNext(lane);
}

void SimLanes::BeginNext(Lane& lane) {
  if (lane.shard->is_busy() || lane.calls.empty()) return;
  const Waiting next = std::move(lane.calls.front());
  lane.calls.pop_front();
  next.begin(*lane.shard, [this, &lane, done = next.done](const auto& answer) {
    done(answer);
    BeginNext(lane);
  });
}

}  // namespace slipstream
