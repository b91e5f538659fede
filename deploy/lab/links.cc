#include "deploy/lab/links.h"

#include <algorithm>

namespace slipstream {
namespace {

/// Returns how long a link is used by a message. `gigabits`: per second; 0 for a link that takes no
/// time.
absl::Duration TimeOf(uint64_t bytes, double gigabits) {
  if (gigabits == 0) return absl::ZeroDuration();
  return absl::Nanoseconds(static_cast<double>(bytes) * 8 / gigabits);
}

}  // namespace

Links::Links(const NetworkSpec& network, uint32_t workers, uint32_t servers, uint32_t groups)
    : network_(network), workers_(workers), servers_(servers), groups_(groups) {}

absl::Time Links::ToServer(WorkerId from, ShardId to, uint64_t bytes, absl::Time now) {
  return Send(workers_[Value(from)].out, network_.worker_gbits, servers_[Value(to)].in,
              network_.server_gbits, bytes, now);
}

absl::Time Links::ToWorker(ShardId from, WorkerId to, uint64_t bytes, absl::Time now) {
  return Send(servers_[Value(from)].out, network_.server_gbits, workers_[Value(to)].in,
              network_.worker_gbits, bytes, now);
}

absl::Time Links::ToGroup(WorkerId from, uint64_t bytes, absl::Time now) {
  Direction inside;  // Is not scarce.
  return Send(workers_[Value(from)].out, network_.worker_gbits, inside, 0, bytes, now);
}

absl::Time Links::FromGroup(WorkerId to, uint64_t bytes, absl::Time now) {
  Direction inside;
  return Send(inside, 0, workers_[Value(to)].in, network_.worker_gbits, bytes, now);
}

absl::Time Links::GroupToServer(uint32_t from, ShardId to, uint64_t bytes, absl::Time now) {
  return Send(groups_[from].out, network_.group_gbits, servers_[Value(to)].in,
              network_.server_gbits, bytes, now);
}

absl::Time Links::ServerToGroup(ShardId from, uint32_t to, uint64_t bytes, absl::Time now) {
  return Send(servers_[Value(from)].out, network_.server_gbits, groups_[to].in,
              network_.group_gbits, bytes, now);
}

absl::Time Links::Send(Direction& from, double from_rate, Direction& to, double to_rate,
                       uint64_t bytes, absl::Time now) {
  const absl::Duration out = TimeOf(bytes, from_rate);
  const absl::Duration in = TimeOf(bytes, to_rate);
  const absl::Time leaves = std::max(now, from.free);
  from.free = leaves + out;
  to.free = std::max(leaves + network_.latency, to.free) + in;
  return std::max(to.free, from.free + network_.latency);
}

}  // namespace slipstream
