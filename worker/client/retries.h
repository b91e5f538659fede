#ifndef SLIPSTREAM_WORKER_CLIENT_RETRIES_H_
#define SLIPSTREAM_WORKER_CLIENT_RETRIES_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/core/call_tries.h"

namespace slipstream {

/// Waits for the given time and returns true; returns false early if the program is to stop.
using Sleeper = std::function<bool(absl::Duration)>;

/// Returns the current time. The time must never go back; its epoch does not matter.
using SteadyClock = std::function<absl::Time()>;

/// The process that is called. Its owner may replace both parts between two tries of a call, if the
/// peer has gone to another address.
struct CalledPeer {
  /// For messages to people: "shard 1 at host:port".
  std::string name;

  /// Shows whether the peer's machine can be reached. Not null.
  std::shared_ptr<grpc::Channel> channel;
};

/// The tries of one call to one peer, repeated until the peer answers or is given up: it waits as
/// CallTries decides, and logs what people should know.
///
/// Not thread-safe: one owner.
class Retries {
 public:
  /// Everything that is borrowed must outlive this object.
  Retries(const CalledPeer& peer, const RetryOptions& options, uint64_t seed,
          const Sleeper& sleeper, const SteadyClock& now)
      : peer_(peer), sleeper_(sleeper), now_(now), tries_(options, seed) {}

  /// Makes the call until it succeeds or fails permanently, and returns its last result; or, if the
  /// peer is given up, CallTries' failure. CANCELLED if the program stops.
  absl::Status Persist(absl::FunctionRef<absl::Status()> call);

  /// Notes that the try has reached the peer, though it may have had to wait there: the peer is not
  /// unreachable.
  void OnReached();

 private:
  // Constant after construction.
  const CalledPeer& peer_;
  const Sleeper& sleeper_;
  const SteadyClock& now_;

  CallTries tries_;
};

/// Waits for as long as a repetition asks for, or until a lost connection to the peer is there
/// again, and logs its news, which `failure` is the reason of. CANCELLED if the program stops.
absl::Status AwaitRepetition(const Repetition& again, const CalledPeer& peer,
                             const absl::Status& failure, const Sleeper& sleeper);

/// Logs that a peer that had failed has answered.
void LogAnswersAgain(const CalledPeer& peer);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RETRIES_H_
