#ifndef SLIPSTREAM_WORKER_CORE_PUSH_VERDICT_H_
#define SLIPSTREAM_WORKER_CORE_PUSH_VERDICT_H_

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// The consequence of an answer to a push for its sender.
enum class PushVerdict {
  /// The push is done, and its sequence is used up. (Also if it came too late for its round.)
  kTaken,
  /// The push had no effect, and the same push has to be sent again: to a busy shard after the wait
  /// that it names, and after NOT_COMBINED at once, to the shard itself.
  kSendAgain,
  /// The push had no effect, and would have none if repeated: pull newer weights and continue from
  /// them. The sequence is free.
  kPullAgain,
  /// This worker cannot go on; Refusal() says why.
  kGiveUp,
};

PushVerdict Judge(PushOutcome outcome);

/// Returns the failure of a worker whose push `shard` refused. FENCED and WRONG_RUN become
/// FAILED_PRECONDITION (a newer registration may continue); OUT_OF_SEQUENCE becomes ABORTED (the
/// shard remembers other pushes than this worker sent). All others are bugs, or bytes that were
/// damaged on the way, and become INTERNAL. REQUIRES: Judge(reply.outcome) == kGiveUp.
absl::Status Refusal(ShardId shard, const PushReply& reply);

/// Checks the reply to a push that is already done, when the shard is asked again because the
/// weights of its first answer broke off. OK if `reply` is consistent with that. Otherwise returns
/// the worker's failure, because the weights will not come: Refusal(), or ABORTED if the shard does
/// not remember the push. REQUIRES: the reply is of the generation of the push, because in a later
/// one the shard remembers nothing of earlier pushes.
absl::Status CheckRepeated(ShardId shard, const PushReply& reply);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_PUSH_VERDICT_H_
