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
#include "worker/training/measures.h"

namespace slipstream {

/// The metadata key under which every saved model holds the run's settings, as a run.yaml.
inline constexpr char kModelSettings[] = "run_yaml";

/// The facts that are known about weights when they are saved.
struct ModelFacts {
  /// The number of completed epochs.
  uint32_t epoch = 0;
  bool is_final = false;

  /// The versions of the weights, by shard.
  std::vector<Version> versions;
  TestMeasures measures;
  uint64_t test_examples = 0;
  std::string weights_sha256;
};

/// Returns the metadata of a model of this run: `run`, `seed`, the facts, and run_yaml with all
/// settings, so that the file alone says what it holds and how it was made. If the settings
/// describe model and data, there is `preset` or `layers`, and `data_format`, too. All values are
/// text, as the format demands.
ModelMetadata DescribeModel(const RunSpec& settings, const ModelFacts& facts);

/// Saves a run's weights in one directory: the final ones as model.safetensors, others as
/// model-epoch-<epoch, four digits>.safetensors. Nothing is deleted; only files of the same name
/// are replaced.
///
/// Thread-safe: const after construction.
class ModelKeeper {
 public:
  /// If `directory` is empty, nothing is kept.
  ModelKeeper(std::string directory, RunSpec settings, TensorLayout layout)
      : directory_(std::move(directory)),
        settings_(std::move(settings)),
        layout_(std::move(layout)) {}

  bool keeps() const { return !directory_.empty(); }

  /// Saves `weights` and what belongs to the model beside them, creates the directory if it is
  /// missing, and returns the file's absolute path. On failure DATA_LOSS names the path and the
  /// reason, and no model file has changed. REQUIRES: keeps().
  absl::StatusOr<std::string> Keep(const ModelFacts& facts, std::span<const float> weights,
                                   const std::vector<StoredTensor>& beside = {}) const;

 private:
  const std::string directory_;
  const RunSpec settings_;
  const TensorLayout layout_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_MODEL_KEEPER_H_
