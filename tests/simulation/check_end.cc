#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

/// Returns whether a worker may end by itself: the run is over, or the worker is no longer a
/// member.
bool IsExcused(const WorkerEnded& ended, const View& view, Phase phase) {
  if (ended.status.ok()) return true;
  if (absl::IsOutOfRange(ended.status)) return phase == Phase::kFinished;
  const Member* member = view.Find(ended.worker.worker);
  const bool is_member = member != nullptr && member->incarnation == ended.worker.incarnation;
  return absl::IsFailedPrecondition(ended.status) && !is_member;
}

}  // namespace

void CheckEnd(const History& history, const Evidence& evidence, Findings& findings) {
  if (!history.is_finished) findings.Add("the run does not come to its end: {}", history.stuck);
  for (const std::string& rule : history.broken_rules) findings.Add("{}", rule);
  View view;
  Phase phase = Phase::kWaitingForServers;
  for (const Event& event : history.events) {
    if (const auto* made = std::get_if<ViewMade>(&event)) view = made->view;
    if (const auto* made = std::get_if<PhaseMade>(&event)) phase = made->phase;
    const auto* ended = std::get_if<WorkerEnded>(&event);
    if (ended == nullptr || IsExcused(*ended, view, phase)) continue;
    findings.Add("worker {}#{} gave up: {}", Value(ended->worker.worker),
                 Value(ended->worker.incarnation), ended->status.ToString());
  }
  if (!history.is_finished) return;
  for (size_t i = 0; i < history.ends.size(); ++i) {
    const ShardEnd& end = history.ends[i];
    if (end.calls_waiting + end.payloads_held + end.bytes_queued > 0) {
      findings.Add("shard {}: left behind {} calls, {} payloads, {} bytes", i, end.calls_waiting,
                   end.payloads_held, end.bytes_queued);
    }
    if (evidence.weights[i].rbegin()->first != end.published) {
      findings.Add("shard {}: another last version", i);
    }
  }
}

std::vector<std::string> CheckAll(const Scenario& scenario, const History& history) {
  const Evidence evidence(history);
  Findings findings;
  CheckEnd(history, evidence, findings);
  CheckVersions(history, evidence, findings);
  CheckMembers(scenario, history, findings);
  CheckRounds(scenario, history, evidence, findings);
  CheckPace(scenario, history, findings);
  if (!history.is_finished) return findings.lines();
  CheckPushes(evidence, findings);
  CheckStaleness(scenario, history, evidence, findings);
  CheckNumbers(scenario, history, evidence, findings);
  CheckCodec(scenario, history, evidence, findings);
  CheckWork(scenario, evidence, findings);
  CheckStop(scenario, history, findings);
  return findings.lines();
}

}  // namespace slipstream
