#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_RECORD_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/compare/run_figures.h"

namespace slipstream {

/// The settings of a run and its results in figures, as its directory has them.
struct RunRecord {
  /// The directory, as the caller named it.
  std::string directory;
  RunSpec settings;

  /// ended_by of summary.json, such as "epochs" or "max_steps". If it has none and reports an
  /// error, "failed".
  std::string ended_by;
  RunFigureValues figures;

  /// The number of gradients by staleness: staleness[σ] had staleness σ. The last item also counts
  /// all larger ones.
  std::vector<uint64_t> staleness;

  /// Where a run diverged: in which epoch, counted from 1, and after how many updates.
  struct Divergence {
    uint64_t epoch = 0;
    uint64_t updates = 0;
  };

  /// Set if the run diverged. That is a result: its figures are those until then, and its accuracy,
  /// if it has none and the number of classes follows from the settings, is that of chance.
  std::optional<Divergence> divergence;

  bool failed() const { return ended_by == "failed"; }

  /// Returns how the run ended, for people: "epochs", or "diverged in epoch 3".
  std::string EndText() const;
};

/// Returns the record of a run with these settings. `summary` is the text of its summary.json.
/// Fails with DATA_LOSS, naming `directory`, if that is no JSON object.
absl::StatusOr<RunRecord> ParseRunRecord(const std::string& directory, const RunSpec& settings,
                                         std::string_view summary);

/// Reads run.yaml and summary.json of a run directory. Failures name the path: NOT_FOUND if
/// `directory` is no run directory, FAILED_PRECONDITION if the run has left no summary,
/// INVALID_ARGUMENT if run.yaml has errors, DATA_LOSS like ParseRunRecord.
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& directory);

/// Return the text of a file, and that of the run directory's metrics.jsonl. They fail with
/// NOT_FOUND if it cannot be read.
absl::StatusOr<std::string> ReadText(const std::string& path);
absl::StatusOr<std::string> ReadMetrics(const std::string& directory);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_RECORD_H_
