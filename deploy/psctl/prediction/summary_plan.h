#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_SUMMARY_PLAN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_SUMMARY_PLAN_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace slipstream {

/// Returns the summary of a run of this machine with a key more, `plan`: what the model of `psctl
/// plan` predicts, beside what came (see CheckJson). Its costs are those of the run's own steps, so
/// that it tells how far queues and policies behaved as predicted; updates cost nothing in it. Null
/// if the directory or the summary tells too little.
nlohmann::ordered_json WithPlan(nlohmann::ordered_json summary, const std::string& directory);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_SUMMARY_PLAN_H_
