#ifndef SLIPSTREAM_DEPLOY_LAB_LINKS_H_
#define SLIPSTREAM_DEPLOY_LAB_LINKS_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "deploy/lab/world_spec.h"

namespace slipstream {

/// The network in virtual time. Each worker, each server and each group of a tree has a link in
/// each direction, on which messages follow one another; between two links there is a constant
/// latency, and nothing else is scarce. A message is on both links at once, as packets are: it has
/// arrived when the slower of the two is done with it; a slow sender does not keep a faster
/// receiver from others. This is the α-β model with a queue at each end.
///
/// Not thread-safe: one owner.
class Links {
 public:
  Links(const NetworkSpec& network, uint32_t workers, uint32_t servers, uint32_t groups = 0);

  /// Return when a message of so many bytes, sent at `now`, has arrived. Messages on the same link
  /// queue in the order of these calls.
  absl::Time ToServer(WorkerId from, ShardId to, uint64_t bytes, absl::Time now);
  absl::Time ToWorker(ShardId from, WorkerId to, uint64_t bytes, absl::Time now);

  // With a tree: a worker's link leads to the aggregators of its group, which share the group's
  // link to the servers.
  absl::Time ToGroup(WorkerId from, uint64_t bytes, absl::Time now);
  absl::Time FromGroup(WorkerId to, uint64_t bytes, absl::Time now);
  absl::Time GroupToServer(uint32_t from, ShardId to, uint64_t bytes, absl::Time now);
  absl::Time ServerToGroup(ShardId from, uint32_t to, uint64_t bytes, absl::Time now);

 private:
  /// One direction of a machine's link.
  struct Direction {
    absl::Time free = absl::InfinitePast();
  };
  struct Machine {
    Direction in;
    Direction out;
  };

  absl::Time Send(Direction& from, double from_rate, Direction& to, double to_rate, uint64_t bytes,
                  absl::Time now);

  const NetworkSpec network_;
  std::vector<Machine> workers_;
  std::vector<Machine> servers_;
  std::vector<Machine> groups_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_LINKS_H_
