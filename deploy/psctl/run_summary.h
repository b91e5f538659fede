#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_SUMMARY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <string>

#include "proto/status.pb.h"

namespace slipstream {

/// What a finished run is remembered by, as one object: name, policy,
/// policy_parameters (those that it takes, as n of softsync), test_accuracy (0 to 1; null where the
/// loss knows no classes) and test_loss of the final evaluation (null if there was none), seconds,
/// examples_per_second, updates, pushes, staleness with the fields of its message, weights_sha256,
/// model (the path of the file with these weights, null if they were not saved), run_dir,
/// evaluations, workers_lost (ids of those that were killed or given up), workers, servers.
nlohmann::ordered_json SummaryJson(const v1::RunStatus& status, const std::string& run_dir);

/// What stands for the summary of a run that has none: error, exit_code, run_dir (null if the run
/// did not come to have one).
nlohmann::ordered_json FailureJson(const std::string& error, int exit_code,
                                   const std::string& run_dir);

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
