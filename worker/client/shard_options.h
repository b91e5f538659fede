#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_OPTIONS_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/layout/shard_map.h"
#include "common/local/shared_arena.h"
#include "common/process/steady_time.h"
#include "common/run/run_spec.h"
#include "worker/client/retry_schedule.h"
#include "worker/client/shard_channel.h"

namespace slipstream {

/// How a process talks to the shards of a run.
struct ShardOptions {
  /// Payload bytes of one message, were they fp32, both ways.
  size_t chunk_bytes = size_t{1} << 20;

  /// The encoding of gradients: fp32 where there is an arena to share.
  Encoding push_encoding = Encoding::kFp32;

  /// The encoding of weights that are for training. Others are exact.
  Encoding weights_encoding = Encoding::kFp32;

  /// With shards of at most so many bytes, or of one message, nothing is to overlap: the thread
  /// that computes exchanges by itself.
  size_t alone_bytes_max = 0;

  /// A message that the peer has not taken in by then is given up.
  absl::Duration write_timeout = absl::Seconds(30);

  /// So is an answer that has not come, and the call is worth another try for any number of times:
  /// rounds wait for the slowest member, a dead peer is found by the connection's own probes, and a
  /// lost lease by the heartbeat.
  absl::Duration answer_timeout = absl::Minutes(10);

  /// A shard that answers RETRY_LATER for this long is given up.
  absl::Duration overload_timeout = absl::Minutes(10);

  /// What all gradients lie in, if shards of this machine may take them from there, as they may
  /// where WireSpec::may_share_memory; else null. Must outlive all clients.
  const SharedArena* arena = nullptr;
  ShardChannel::Options channel;
  RetryOptions retry;

  /// Seeds the jitter of waits.
  uint64_t seed = 1;

  absl::Time WriteDeadline() const { return SteadyNow() + write_timeout; }
  absl::Time AnswerDeadline() const { return SteadyNow() + answer_timeout; }

  /// What a run's settings say of them.
  static ShardOptions For(const RunSpec& settings, const ShardMap& map);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_OPTIONS_H_
