#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_RECORD_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/run/run_spec.h"
#include "deploy/psctl/comparison/run_figures.h"

namespace slipstream {

/// What a run has left of itself: its settings, and its results in figures.
struct RunRecord {
  /// As it was named.
  std::string directory;
  RunSpec settings;

  /// As in summary.json: epochs, max_steps, …; "failed" where the summary tells of a failure.
  std::string ended_by;
  RunFigureValues figures;

  /// staleness[σ] gradients had staleness σ; the last place holds everything above it, too.
  std::vector<uint64_t> staleness;

  bool failed() const { return ended_by == "failed"; }
};

/// The record of a run with these settings; `summary` is the text of its summary.json. DATA_LOSS,
/// naming `directory`, if that is no JSON object.
absl::StatusOr<RunRecord> ParseRunRecord(const std::string& directory, const RunSpec& settings,
                                         std::string_view summary);

/// Reads run.yaml and summary.json of a run directory. Failures name the path and what to do:
/// NOT_FOUND if there is no run directory at `directory`, FAILED_PRECONDITION if the run has left
/// no summary, INVALID_ARGUMENT if run.yaml is none, DATA_LOSS as above.
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& directory);

/// The text of the run directory's metrics.jsonl. NOT_FOUND if it cannot be read.
absl::StatusOr<std::string> ReadMetrics(const std::string& directory);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_RECORD_H_
