#ifndef SLIPSTREAM_SERVER_SERVICE_PULL_ENGINE_H_
#define SLIPSTREAM_SERVER_SERVICE_PULL_ENGINE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard_state.h"
#include "server/service/shard.h"
#include "server/service/version_changes.h"
#include "server/service/waiting_call.h"

namespace slipstream {

/// Answers the pulls that come over calls, for a shard or for an aggregator.
///
/// Thread-safe in every implementation. Must outlive the calls that it answers.
class PullEngine {
 public:
  virtual ~PullEngine() = default;

  /// Returns the answer, or nothing if `call` gets it later. Fails with the refusal.
  virtual absl::StatusOr<std::optional<Answer>> Pull(const PullRequest& request,
                                                     WaitingCall* call) = 0;

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  virtual bool Cancel(WaitingCall* call) = 0;

  /// Notes that an answered pull of this reader has sent its answer, or that its call is gone.
  virtual void FinishPull(WaitingCall* call, const Reader& reader) = 0;

  /// Returns the facts that go behind these weights, if they are sent by now; nothing if they are
  /// not known here.
  virtual std::optional<WeightsSeal> SealOf(const ServedWeights& weights) = 0;

  /// Counts the values of an answer, which are sent by changes unless these are null.
  virtual void CountPulled(const Answer& answer, Encoding encoding,
                           const VersionChanges::Parts& changes) = 0;

  /// Returns the number, among the servers, of the one aggregator that may pull in the name of
  /// `worker`.
  virtual ShardId AggregatorOf(WorkerId worker) const = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_PULL_ENGINE_H_
