#include "worker/client/retries.h"

#include <algorithm>

#include "common/log/log.h"
#include "common/process/steady_time.h"
#include "common/rpc/steady_deadline.h"

namespace slipstream {
namespace {

// How often a wait checks whether the program is to stop.
constexpr absl::Duration kStopCheckInterval = absl::Milliseconds(20);

/// Waits for `wait`, or until a lost connection is established again. Returns false if the program
/// is to stop.
///
/// A plain sleep is not enough: a channel makes progress only while a thread waits on it (gRPC's
/// own thread serves it only every five seconds), so a peer that is back would be noticed late.
bool PauseOrReconnect(grpc::Channel& channel, absl::Duration wait, const Sleeper& sleeper) {
  // The connection works: the peer itself refused the call.
  if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return sleeper(wait);
  const absl::Time end = SteadyNow() + wait;
  for (;;) {
    if (!sleeper(absl::ZeroDuration())) return false;
    const absl::Time now = SteadyNow();
    if (now >= end) return true;
    if (channel.WaitForConnected(SteadyDeadline(std::min(end, now + kStopCheckInterval)))) {
      return true;
    }
  }
}

void LogNews(const Repetition& again, const CalledPeer& peer, const absl::Status& failure) {
  if (again.news == Repetition::News::kFirst) {
    LogInfo("waiting until it is ready", {{"peer", peer.name}, {"reason", failure.message()}});
  } else if (again.news == Repetition::News::kLong) {
    const bool is_busy = absl::IsResourceExhausted(failure);
    LogWarning(is_busy ? "has too much to do, trying again" : "cannot be reached, trying again",
               {{"peer", peer.name},
                {"for_seconds", absl::ToDoubleSeconds(again.patience)},
                {"reason", failure.message()}});
  }
}

}  // namespace

absl::Status AwaitRepetition(const Repetition& again, const CalledPeer& peer,
                             const absl::Status& failure, const Sleeper& sleeper) {
  if (again.was_reached) LogAnswersAgain(peer);
  LogNews(again, peer, failure);
  const bool goes_on = again.wait == absl::ZeroDuration()
                           ? sleeper(again.wait)
                           : PauseOrReconnect(*peer.channel, again.wait, sleeper);
  return goes_on ? absl::OkStatus() : absl::CancelledError("stopped");
}

void LogAnswersAgain(const CalledPeer& peer) { LogInfo("answers again", {{"peer", peer.name}}); }

absl::Status Retries::Persist(absl::FunctionRef<absl::Status()> call) {
  for (;;) {
    tries_.OnBegin(now_());
    const absl::Status status = call();
    if (status.ok()) OnReached();
    if (status.ok() || !IsTransient(status)) return status;
    if (!sleeper_(absl::ZeroDuration())) return absl::CancelledError("stopped");
    const absl::StatusOr<Repetition> again = tries_.OnFailure(status, peer_.name, now_());
    if (!again.ok()) return again.status();
    const absl::Status over = AwaitRepetition(*again, peer_, status, sleeper_);
    if (!over.ok()) return over;
  }
}

void Retries::OnReached() {
  if (tries_.OnReached()) LogAnswersAgain(peer_);
}

}  // namespace slipstream
