#ifndef SLIPSTREAM_SERVER_SERVICE_PUSH_ENGINE_H_
#define SLIPSTREAM_SERVER_SERVICE_PUSH_ENGINE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/service/push_assembly.h"
#include "server/service/shard.h"
#include "server/service/waiting_call.h"

namespace slipstream {

/// Takes the pushes that come over calls and answers them, for a shard or for an aggregator.
///
/// Thread-safe in every implementation. Must outlive the calls that it answers.
class PushEngine {
 public:
  virtual ~PushEngine() = default;

  /// Decides at the header of a push whether its values are wanted.
  virtual BegunPush BeginPush(const PushHeader& header) = 0;

  /// Takes a push that is complete. Returns the answer, or nothing if `call` gets it later.
  virtual std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call) = 0;

  /// Takes the answer to a push that is not wanted. Returns it, or nothing if `call` gets it later.
  virtual std::optional<Answer> Refuse(PushReply refusal, WaitingCall* /*call*/) {
    return Answer{.push = std::move(refusal), .weights = std::nullopt};
  }

  /// Gives up a push that was begun and will not be complete.
  virtual void AbandonPush(PushAssembly& push) = 0;

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  virtual bool Cancel(WaitingCall* call) = 0;

  /// Notes that an Exchange call is over, and neither pushes nor waits any more.
  virtual void OnCallGone(WaitingCall* /*call*/) {}

  /// Makes new versions, from now on, where processes of this machine can read them.
  virtual void ShareVersions() = 0;

  /// Count the values of a push, and of an answer that is sent in this encoding.
  virtual void CountPushed(uint64_t values, uint64_t bytes) = 0;
  virtual void CountPulled(const Answer& answer, Encoding encoding) = 0;

  /// Returns whether the identity is that of a member whose pushes come here, or may be one whose
  /// view is on its way.
  virtual bool MayBeMember(const Identity& identity) = 0;

  /// Returns whether the coordinator has told which run this is.
  virtual bool KnowsRun() = 0;

  /// Returns whether this is the number of the run.
  virtual bool IsRun(uint64_t run) = 0;

  /// Returns the number, among the servers, of the one aggregator that may send the pushes of
  /// `worker` as parts.
  virtual ShardId AggregatorOf(WorkerId worker) const = 0;

  /// Returns the time by the engine's clock, which does not go back.
  virtual absl::Time now() const = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_PUSH_ENGINE_H_
