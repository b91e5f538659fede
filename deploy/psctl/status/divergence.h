#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_DIVERGENCE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_DIVERGENCE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "proto/status.pb.h"

namespace slipstream {

/// Stands for an accuracy where the weights give no finite numbers: what was counted then is
/// chance.
inline constexpr char kNotFinite[] = "not finite";

/// Returns whether training ended because its numbers were not finite any more. Such a run has
/// failed, and yet is a result: it says how much staleness these settings bear.
bool HasDiverged(const v1::RunStatus& status);

/// Returns whether the measured weights gave finite numbers.
bool IsFinite(const v1::EvaluationStatus& evaluation);

/// Returns "91.20%", or "not finite". REQUIRES: the loss has classes, so that there is an accuracy.
std::string AccuracyText(const v1::EvaluationStatus& evaluation);

/// Returns where a run diverged, or null if it did not: epoch, updates and versions (by shard) that
/// it had reached; worker, mini_batch and what of the last mini-batch without finite numbers (null
/// if the final weights showed it); staleness_mean, staleness_window_mean (of the last 100 updates)
/// and staleness_max up to then; test_accuracy ("not finite", or the final one); and reason.
nlohmann::ordered_json DivergenceJson(const v1::RunStatus& status);

/// Returns the same as facts for people; empty if the run did not diverge.
std::vector<std::pair<std::string, std::string>> DivergenceFacts(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_DIVERGENCE_H_
