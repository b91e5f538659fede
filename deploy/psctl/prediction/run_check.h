#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_RUN_CHECK_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_RUN_CHECK_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/psctl/prediction/prediction.h"

namespace slipstream {

/// A figure of a run that has ended, beside what was predicted.
struct CheckedFigure {
  std::string name;
  CostUnit unit = CostUnit::kPlain;
  double predicted = 0;
  double measured = 0;

  /// measured / predicted − 1; of shares and chances, the difference.
  double deviation = 0;
  bool is_share = false;
};

/// Compares a prediction with the text of a run's summary.json: examples/s, the step and the part
/// of it that is computing, overlap, mean staleness, P(σ > 2n), updates/s and bytes. Fails with
/// DATA_LOSS if the text is no summary of a run that trained.
absl::StatusOr<std::vector<CheckedFigure>> CheckRun(const Prediction& prediction,
                                                    std::string_view summary);

/// Returns the figure that deviates most, as a ratio or as a share. REQUIRES: there are figures.
const CheckedFigure& LargestDeviation(const std::vector<CheckedFigure>& figures);

/// Returns a table of the figures, and a line that names the largest deviation.
std::string CheckText(const std::vector<CheckedFigure>& figures);
nlohmann::ordered_json CheckJson(const std::vector<CheckedFigure>& figures);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_RUN_CHECK_H_
