#ifndef SLIPSTREAM_SERVER_DATA_PLANE_DATA_PLANE_ENGINE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_DATA_PLANE_ENGINE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/shard_state.h"
#include "server/data_plane/push_assembly.h"
#include "server/data_plane/shard.h"
#include "server/data_plane/version_changes.h"
#include "server/data_plane/waiting_call.h"

namespace slipstream {

/// Answers the pushes and pulls that come over calls, for a shard or for an aggregator.
///
/// Thread-safe in every implementation. Must outlive the calls that it answers.
class DataPlaneEngine {
 public:
  virtual ~DataPlaneEngine() = default;

  // Pushes.

  /// Decides at the header of a push whether its values are wanted.
  virtual BegunPush BeginPush(const PushHeader& header) = 0;

  /// Takes a push that is complete. Returns the answer, or nothing if `call` gets it later.
  virtual std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call) = 0;

  /// Takes the answer to a push that is not wanted. Returns it, or nothing if `call` gets it later.
  virtual std::optional<Answer> Refuse(PushReply refusal, WaitingCall* call) = 0;

  /// Gives up a push that was begun and will not be complete.
  virtual void AbandonPush(PushAssembly& push) = 0;

  /// Notes that an Exchange call is over, and neither pushes nor waits any more.
  virtual void OnCallGone(WaitingCall* call) = 0;

  // Pulls.

  /// Returns the answer, which may be a refusal, or nothing if `call` gets it later.
  virtual std::optional<Answer> Pull(const PullRequest& request, WaitingCall* call) = 0;

  /// Notes that an answered pull of this reader has sent its answer, or that its call is gone.
  virtual void FinishPull(WaitingCall* call, const Reader& reader) = 0;

  /// Returns the facts that go behind the weights of this answer, if they are sent by now; nothing
  /// if they are not known here.
  virtual std::optional<WeightsTrailer> TrailerOf(const Answer& answer) = 0;

  /// Returns whether readers who are not members wait for a place.
  virtual bool ReadersWait() = 0;

  // Calls, members and figures.

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  virtual bool Cancel(WaitingCall* call) = 0;

  /// Makes new versions, from now on, where processes of this machine can read them.
  virtual void ShareVersions() = 0;

  /// Counts values of a push, and the bytes that they took.
  virtual void CountPushed(uint64_t values, uint64_t bytes) = 0;

  /// Counts the values of an answer, which are sent in this encoding, or by changes unless these
  /// are null.
  virtual void CountPulled(const Answer& answer, Encoding encoding,
                           const VersionChanges::Parts& changes) = 0;

  /// Returns whether the identity is that of a member whose pushes come here, or may be one whose
  /// view is on its way.
  virtual bool MayBeMember(const Identity& identity) = 0;

  /// Returns the number of the run; 0 until the coordinator has told it.
  virtual uint64_t RunNumber() = 0;

  /// Returns the number, among the servers, of the one aggregator that may pull in the name of
  /// `worker`, and send its pushes as parts.
  virtual ShardId AggregatorOf(WorkerId worker) const = 0;

  /// Returns the time by the engine's clock, which does not go back.
  virtual absl::Time now() const = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_DATA_PLANE_ENGINE_H_
