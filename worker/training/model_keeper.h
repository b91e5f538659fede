#ifndef SLIPSTREAM_WORKER_TRAINING_MODEL_KEEPER_H_
#define SLIPSTREAM_WORKER_TRAINING_MODEL_KEEPER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "common/model_file/model_header.h"
#include "common/run/run_spec.h"
#include "worker/training/test_measures.h"

namespace slipstream {

/// The run's settings as a run.yaml, in the metadata of every model that a run leaves.
inline constexpr char kModelSettings[] = "run_yaml";

/// What is known of weights when they are saved.
struct ModelFacts {
  /// Epochs completed.
  uint32_t epoch = 0;
  bool is_final = false;

  /// Of the weights, by shard.
  std::vector<Version> versions;
  TestMeasures measures;
  uint64_t test_examples = 0;
  std::string weights_sha256;
};

/// The metadata of a model of this run: `run`, `seed`, `preset` or `layers`, `data_format`, the
/// facts, and run_yaml with all settings, so that the file alone tells what it is and how it came
/// about. All are text, as the format wants.
ModelMetadata DescribeModel(const RunSpec& settings, const ModelFacts& facts);

/// Saves a run's weights into one directory: the final ones as model.safetensors, others as
/// model-epoch-<epoch, four digits>.safetensors. All are kept; only files of the same name are
/// replaced.
///
/// Thread-safe: const after construction.
class ModelKeeper {
 public:
  /// An empty `directory` keeps nothing.
  ModelKeeper(std::string directory, RunSpec settings, TensorLayout layout)
      : directory_(std::move(directory)),
        settings_(std::move(settings)),
        layout_(std::move(layout)) {}

  bool keeps() const { return !directory_.empty(); }

  /// Saves `weights`, making the directory if it is missing, and returns the file's absolute path.
  /// DATA_LOSS names the path and the reason; no file has changed then.
  /// REQUIRES: keeps().
  absl::StatusOr<std::string> Keep(const ModelFacts& facts, std::span<const float> weights) const;

 private:
  const std::string directory_;
  const RunSpec settings_;
  const TensorLayout layout_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_MODEL_KEEPER_H_
