#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_STEPS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_STEPS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/coordinator/run_questions.h"
#include "server/core/coordinator/run_state.h"

namespace slipstream {

/// Moves a run on: from phase to phase, from stage to stage, and back where shards return to an
/// earlier version. What the parts of the state decide, it carries out, and puts into the orders.
///
/// Not thread-safe: one owner, which serialises calls.
class RunSteps {
 public:
  /// `state` must outlive the object.
  explicit RunSteps(RunState& state) : state_(state), questions_(state) {}

  /// Does all that the state allows and time asks for, and puts it into the orders.
  void Advance(absl::Time now);

  /// Fails the run. Returns false, as nothing more follows. REQUIRES: the run is not over.
  bool Fail(std::string reason, absl::Time now);

  /// Fails the run if it has just begun, and none of its workers can save the trained weights.
  void FailIfNobodySaves(absl::Time now);

  /// Notes that `by`, if it is known, has asked for the next stage, and when that begins.
  void NoteChange(uint32_t after_epoch, const std::string& by);

  /// Begins the next stage.
  void EnterNextStage(absl::Time now);

  /// Has shards return whose servers came back, by what the report of one tells.
  void ReturnShards(const ServerReport& report, absl::Time now);

  /// Ends the work early. `fails_for`: as RunWork::EndEarly.
  void EndWork(EndReason reason, std::string fails_for = "");

 private:
  // Each of these returns whether it changed the phase or a grant, so that more steps may follow.
  bool AdvanceOnce(absl::Time now);
  bool AwaitServers(absl::Time now);
  bool AwaitWorkers(absl::Time now);
  bool AwaitInitialWeights(absl::Time now);
  bool Train(absl::Time now);
  bool Drain(absl::Time now);
  bool Measure(absl::Time now);

  bool WorkIsDone();
  void EndWorkIfDue(absl::Time now);
  void OrderSaveIfDue(absl::Time now);

  /// Fails the run, if possible after the shards have saved their last versions.
  bool StopTraining(std::string why, absl::Time now);
  bool FailOnceSaved(bool are_drained, absl::Time now);

  /// Returns whether the run trains again.
  bool GoBackTo(const SavedVersion& version, absl::Time now);

  void AssignEvaluation(WorkerId worker, absl::Time now);
  void GiveUpLateEvaluator(absl::Time now);
  void NoteSkipped(uint32_t epoch);

  void MoveTo(Phase phase, absl::Time now);
  void AnnouncePhase(absl::Time now);
  void PublishOrders(absl::Time now);

  RunState& state_;
  const RunQuestions questions_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_STEPS_H_
