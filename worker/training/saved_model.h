#ifndef SLIPSTREAM_WORKER_TRAINING_SAVED_MODEL_H_
#define SLIPSTREAM_WORKER_TRAINING_SAVED_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/run_config.h"
#include "common/model_file/model_file.h"
#include "common/settings/run_spec.h"
#include "worker/training/measures.h"

namespace slipstream {

/// The result of measuring a model file.
struct ModelEvaluation {
  /// The name of the run.
  std::string name;
  TestMeasures measures;

  /// The source of the data, as DataSource returns it.
  std::string data;
  uint64_t examples = 0;
  uint64_t parameters = 0;
  std::string weights_sha256;
};

/// Returns the settings of the run that saved `file`: those in `config` if it is given, else those
/// in the file's metadata. `overrides` apply in both cases. Fails with INVALID_ARGUMENT and lists
/// everything that is wrong with the settings, or says that the metadata holds none.
absl::StatusOr<RunSpec> SettingsOf(const ModelFile& file, const std::string& path,
                                   const std::optional<std::string>& config,
                                   const Overrides& overrides);

/// Measures the file's weights on the test set of `settings`, like a worker of the run: equal
/// weights and data give equal figures. Reads no training data. Fails like ModelFile and
/// LoadTestData, and with INVALID_ARGUMENT if the settings' net and data do not fit.
absl::StatusOr<ModelEvaluation> EvaluateModel(const ModelFile& file, const RunSpec& settings);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_SAVED_MODEL_H_
