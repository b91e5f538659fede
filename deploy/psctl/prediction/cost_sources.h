#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_COST_SOURCES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_COST_SOURCES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/prediction/run_costs.h"

namespace slipstream {

/// Reads what `ps_lab measure` has printed. Links are those between processes of one machine. Fails
/// with DATA_LOSS if the text is something else.
absl::StatusOr<KnownCosts> ParseMeasured(std::string_view text, const RunSpec& run);

/// Returns what a run's metrics.jsonl tells of it: computing time and its spread from the steps
/// told there, as a multiple of the mini-batch's size, and the link's rate from the quickest tenth
/// of exchanges, which queued least. Figures that the steps do not tell are absent. `run`: the
/// run's own settings.
KnownCosts CostsOfSteps(std::string_view metrics, const RunSpec& run, const std::string& origin);

/// Returns whether all servers are on this machine.
bool IsOnThisMachine(const RunSpec& run);

/// Returns what is assumed of a network that nobody described: 1 Gbit/s, 50 µs, and a machine for
/// each worker and server.
KnownCosts AssumedNetwork();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_COST_SOURCES_H_
