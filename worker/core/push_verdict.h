#ifndef SLIPSTREAM_WORKER_CORE_PUSH_VERDICT_H_
#define SLIPSTREAM_WORKER_CORE_PUSH_VERDICT_H_

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// What an answer to a push means for its sender.
enum class PushVerdict {
  /// Done; its sequence is used up. (Also of a push that came too late for its round.)
  kTaken,
  /// The shard is busy: the same push again, after the wait that it names.
  kSendAgain,
  /// No effect, and it would have none later: newer weights, and on from there. The sequence is
  /// free.
  kPullAgain,
  /// This worker cannot go on; Refusal() says why.
  kGiveUp,
};

PushVerdict Judge(PushOutcome outcome);

/// The failure of a worker whose push `shard` refused. FENCED and WRONG_RUN are FAILED_PRECONDITION
/// (a newer registration may go on), OUT_OF_SEQUENCE is ABORTED (the shard remembers other pushes
/// than this worker sent), all others are bugs, or bytes that changed on the way, and INTERNAL.
/// REQUIRES: Judge(reply.outcome) == kGiveUp.
absl::Status Refusal(ShardId shard, const PushReply& reply);

/// OK if `reply` may follow one that said that the same push is done: the weights of the first
/// answer broke off, and the shard was asked again. Otherwise the failure of the worker, since the
/// weights will not come: Refusal(), or ABORTED from a shard that does not remember the push.
absl::Status CheckRepeated(ShardId shard, const PushReply& reply);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_PUSH_VERDICT_H_
