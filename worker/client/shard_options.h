#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_OPTIONS_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/layout/shard_map.h"
#include "common/local/shared_arena.h"
#include "common/process/steady_time.h"
#include "common/settings/run_spec.h"
#include "worker/client/retries.h"
#include "worker/client/shard_channel.h"

namespace slipstream {

/// Options for a process's communication with the shards of a run.
struct ShardOptions {
  /// The payload bytes of one message if its values are fp32, in both directions.
  size_t chunk_bytes = size_t{1} << 20;

  /// The encoding of gradients. Must be fp32 if `arena` is set.
  Encoding push_encoding = Encoding::kFp32;

  /// The encoding of weights for training. All other weights are sent exactly. Must be fp32 if
  /// `arena` is set.
  Encoding weights_encoding = Encoding::kFp32;

  /// If every shard has at most this many bytes, or fits one message, nothing is worth overlapping:
  /// with one pipeline slot, exchanges begin when the gradient is complete, and the thread that
  /// computes makes that of the first shard itself.
  size_t alone_bytes_max = 0;

  /// How long the peer may take to accept a message before the call is given up.
  absl::Duration write_timeout = absl::Seconds(30);

  /// How long an answer may take before the call is given up. The call is then repeated any number
  /// of times: rounds wait for their slowest member, the connection's own probes find a dead peer,
  /// and the heartbeat finds a lost lease.
  absl::Duration answer_timeout = absl::Minutes(10);

  /// How long a shard may answer RETRY_LATER before it is given up.
  absl::Duration overload_timeout = absl::Minutes(10);

  /// The arena that holds all gradients, if shards of this machine may read them from there
  /// (WireSpec::may_share_memory); else null. Must outlive all clients.
  const SharedArena* arena = nullptr;
  ShardChannel::Options channel;
  RetryOptions retry;

  /// Tests replace it.
  SteadyClock now = SteadyNow;

  /// Seeds the jitter of the waits between tries.
  uint64_t seed = 1;

  absl::Time WriteDeadline() const { return SteadyNow() + write_timeout; }
  absl::Time AnswerDeadline() const { return SteadyNow() + answer_timeout; }

  /// Returns the options that a run's settings ask for.
  static ShardOptions For(const RunSpec& settings, const ShardMap& map);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_OPTIONS_H_
