#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_PHASE_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_PHASE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/view.h"

namespace slipstream {

/// The phase that a run is in, since when, and for how long it has trained.
///
/// Invariant: phases only advance, but for TrainAgain, of which a new stage of the run and a return
/// to an earlier version make use; kFinished and kFailed are final.
///
/// Not thread-safe: one owner, which serialises calls.
class RunPhase {
 public:
  /// The run waits for servers from `start` on.
  explicit RunPhase(absl::Time start) : start_(start), since_(start) {}

  Phase phase() const { return phase_; }
  bool IsOver() const { return phase_ == Phase::kFinished || phase_ == Phase::kFailed; }

  /// OUT_OF_RANGE if the run has finished, ABORTED if it has failed.
  absl::Status RefuseIfOver() const;

  /// FAILED_PRECONDITION if the run has not begun to train.
  absl::Status RefuseBeforeTraining() const;

  /// Why the run failed; empty if it has not.
  const std::string& failure() const { return failure_; }

  /// When this process began, and when the phase did.
  absl::Time start() const { return start_; }
  absl::Time since() const { return since_; }

  /// REQUIRES: `phase` is a later one. OnAnnounced follows, and so it does after Fail and
  /// TrainAgain.
  void MoveTo(Phase phase, absl::Time now);
  void Fail(std::string reason, absl::Time now);

  /// Notes that training begins, for the first time; MoveTo follows.
  void BeginTraining(absl::Time now) { training_began_ = now; }

  /// Goes back to kTraining, or stays there. REQUIRES: the run is not over.
  void TrainAgain(absl::Time now);

  /// The number of the orders that announced the phase.
  void OnAnnounced(uint64_t orders) { announced_by_ = orders; }
  uint64_t announced_by() const { return announced_by_; }

  /// Returns the time from the beginning of training until all shards had drained or the run
  /// failed, or else until `now`; what passed before the run went back to training is left out.
  absl::Duration TrainingTime(absl::Time now) const;

  /// Has `gap` not count.
  void Forgive(absl::Duration gap) {
    start_ += gap;
    since_ += gap;
  }

  /// Returns for how long the run had trained at `now`, in ns; nothing if training has not begun.
  /// It is kept instead of times, which mean nothing to another process.
  std::optional<int64_t> Trained(absl::Time now) const;

  /// Goes on with what Parts has read, in this phase, after so much training. All times begin anew.
  void OnRestored(Phase phase, std::optional<int64_t> trained, absl::Time now);

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.failure_, self.announced_by_);
  }

 private:
  Phase phase_ = Phase::kWaitingForServers;
  std::string failure_;
  uint64_t announced_by_ = 1;
  absl::Time start_;
  absl::Time since_;
  absl::Time training_began_ = absl::InfiniteFuture();
  absl::Time trained_until_ = absl::InfiniteFuture();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_PHASE_H_
