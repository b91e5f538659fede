#ifndef SLIPSTREAM_DEPLOY_PSCTL_PLAN_PLAN_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PLAN_PLAN_VIEW_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "deploy/psctl/prediction/prediction.h"
#include "deploy/psctl/prediction/run_costs.h"

namespace slipstream {

/// Everything that `psctl plan` shows.
struct PlanReport {
  std::string name;
  KnownCosts costs;

  /// By rising numbers of workers, and then by policy.
  std::vector<Prediction> predictions;
  std::vector<std::string> verdicts;
};

/// Returns the costs with their flags and where they come from, one line each.
std::string CostsText(const KnownCosts& costs);

/// Returns them as an object, each with value and from.
nlohmann::ordered_json CostsJson(const KnownCosts& costs);

/// Returns the report as tables and sentences; below them is what each number assumes.
std::string PlanReportText(const PlanReport& report);

/// Returns the report with the keys name, costs, predictions, verdicts
/// and assumptions (by key of the predictions). Times are in seconds.
nlohmann::ordered_json PlanReportJson(const PlanReport& report);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PLAN_PLAN_VIEW_H_
