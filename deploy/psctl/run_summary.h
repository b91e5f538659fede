#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_SUMMARY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proto/status.pb.h"

namespace slipstream {

/// The end of a run, as far as psctl knows what the coordinator does not.
struct RunEnd {
  /// "interrupted" or "failed"; empty where the coordinator says what ended the run.
  std::string ended_by;

  /// What went wrong, for people; empty if nothing did.
  std::string error;

  /// The last errors in the log of the process that made the run fail.
  std::vector<std::string> log_lines;
  int exit_code = 0;

  /// The models that were saved, by path, oldest first.
  std::vector<std::string> models;

  /// Whether the push logs have all pushes; nothing where none were asked for.
  std::optional<bool> has_whole_push_logs;
};

/// What a run is remembered by, as one object, however it ended: name, run (its id, hexadecimal),
/// ended_by, error (null for none), log_lines (the last errors that explain it), exit_code, phase
/// (the last that was heard of), policy, policy_parameters (those that it takes, as n of softsync),
/// test_accuracy (0 to 1; null where the loss knows no classes) and test_loss of the final
/// evaluation (null if there was none), seconds, examples_per_second, epochs (that are complete),
/// updates, pushes, staleness with the fields of its message, weights_sha256, model (the path of
/// the file with these weights, null if they were not saved), models (all that were saved),
/// push_logs_complete (null without push logs), run_dir, evaluations, workers_lost (ids of those
/// that were killed or given up), workers, servers. Of a run that failed or was interrupted,
/// figures are those that psctl heard last.
nlohmann::ordered_json SummaryJson(const v1::RunStatus& status, const std::string& run_dir,
                                   const RunEnd& end);

/// Stands for the summary of a run that did not come to begin: error, exit_code, run_dir (null if
/// it has none).
nlohmann::ordered_json FailureJson(const std::string& error, int exit_code,
                                   const std::string& run_dir);

/// The paths of all models that the status tells of or that are among `found`, in this order: those
/// that the run's workers have saved elsewhere are known from the status alone.
std::vector<std::string> ModelsOf(const v1::RunStatus& status, std::vector<std::string> found);

/// The summary for people, with the histogram of staleness drawn.
std::string SummaryText(const v1::RunStatus& status, const std::string& run_dir);

/// One evaluation, with the versions of the weights measured by shard, as it appears in the summary
/// and in metrics.jsonl.
nlohmann::ordered_json EvaluationJson(const v1::EvaluationStatus& evaluation);

/// "softsync (n = 2, 2 gradients per update)".
std::string PolicyText(const v1::RunStatus& status);

/// "reject beyond 4 (largest 4): 12 rejected, …". REQUIRES: the status has a guard.
std::string GuardText(const v1::RunStatus& status);

/// The final evaluation, else the last one, else nullptr.
const v1::EvaluationStatus* DecidingEvaluation(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_SUMMARY_H_
