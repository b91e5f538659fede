#ifndef SLIPSTREAM_WORKER_TRAINING_SAVED_MODEL_H_
#define SLIPSTREAM_WORKER_TRAINING_SAVED_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/run_config.h"
#include "common/model_file/model_file.h"
#include "common/run/run_spec.h"
#include "worker/training/test_measures.h"

namespace slipstream {

/// What a model file is worth.
struct ModelEvaluation {
  /// Of the run.
  std::string name;
  TestMeasures measures;
  uint64_t examples = 0;
  uint64_t parameters = 0;
  std::string weights_sha256;
};

/// The settings of the run that left `file`: those of `config` if it is named, else those in the
/// file's metadata; `overrides` count in both cases. INVALID_ARGUMENT with everything that is wrong
/// with them, or if the metadata hold none.
absl::StatusOr<RunSpec> SettingsOf(const ModelFile& file, const std::string& path,
                                   const std::optional<std::string>& config,
                                   const Overrides& overrides);

/// Measures the file's weights on the test set of `settings`, as a worker of the run does: equal
/// weights and data give equal figures. Fails as ModelFile and LoadData do, and with
/// INVALID_ARGUMENT if the settings' net and data do not fit.
absl::StatusOr<ModelEvaluation> EvaluateModel(const ModelFile& file, const RunSpec& settings);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_SAVED_MODEL_H_
