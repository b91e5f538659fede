#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_RUN_SUMMARY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_RUN_SUMMARY_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proto/status.pb.h"

namespace slipstream {

/// The facts about the end of a run that psctl knows and the coordinator does not.
struct RunEnd {
  /// "interrupted" or "failed". If empty, the status says what ended the run.
  std::string ended_by;

  /// The error in words for people; empty if there was none.
  std::string error;

  /// The last errors in the log of the process that made the run fail.
  std::vector<std::string> log_lines;
  int exit_code = 0;

  /// The paths of the saved models, the oldest first.
  std::vector<std::string> models;

  /// Whether the push logs have all pushes. Absent if the run writes no push logs.
  std::optional<bool> has_whole_push_logs;
};

/// Returns the summary of a run that began, whether it finished, failed or was interrupted. Keys:
/// name, run (its id, hexadecimal), ended_by, error (null for none), log_lines (the last errors
/// that explain it), exit_code, phase (the last one reported), policy, policy_parameters (those
/// that the policy takes, such as n of softsync), round_size, test_accuracy (0 to 1; null if the
/// loss has no classes) and test_loss of the final evaluation, else of the last one (null if there
/// was none), seconds, examples, examples_per_second, epochs (complete ones), updates, pushes,
/// staleness (with the fields of its message), guard (null for none), weights_sha256, model (the
/// path of the file with these weights; null if they were not saved), models (all saved ones),
/// push_logs_complete (null without push logs), returns (how often shards went on from a
/// checkpoint), parameters, run_dir, evaluations, workers_lost (ids
/// of dead workers), workers, servers (each with its generation, the version returned_to and the
/// number of versions_lost), divergence (where a run diverged, see DivergenceJson; null if it did
/// not. Such a run has no test_accuracy but a final one that is finite). The figures of a run that
/// failed or was interrupted are those that psctl received last.
nlohmann::ordered_json SummaryJson(const v1::RunStatus& status, const std::string& run_dir,
                                   const RunEnd& end);

/// Returns the object that replaces the summary if a run could not begin: error, exit_code, run_dir
/// (null if it has none).
nlohmann::ordered_json FailureJson(const std::string& error, int exit_code,
                                   const std::string& run_dir);

/// Returns the paths of all models that the status names, and then those in `found` that it does
/// not name. Only the status names models that workers have saved outside the run directory.
std::vector<std::string> ModelsOf(const v1::RunStatus& status, std::vector<std::string> found);

/// Returns the summary for people, with a drawing of the histogram of staleness.
std::string SummaryText(const v1::RunStatus& status, const std::string& run_dir);

/// Returns one evaluation as it appears in the summary and in metrics.jsonl. Its `versions` are
/// those of the measured weights, by shard.
nlohmann::ordered_json EvaluationJson(const v1::EvaluationStatus& evaluation);

/// Returns a text such as "softsync (n = 2, 2 gradients per update)". It ends with ", as n = 30" if
/// another n means the same.
std::string PolicyText(const v1::RunStatus& status);

/// Returns "reject beyond 4 (largest 4): 12 rejected, …". REQUIRES: the status has a guard.
std::string GuardText(const v1::RunStatus& status);

/// Returns "pushed 12.4 MiB (25.1% of fp32), pulled 49.2 MiB", of all shards; the share is left out
/// where it is all.
std::string ValuesText(const v1::RunStatus& status);

/// Returns the final evaluation; if there is none, the last one; nullptr if there is no evaluation.
const v1::EvaluationStatus* DecidingEvaluation(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_RUN_SUMMARY_H_
