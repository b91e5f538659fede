#ifndef SLIPSTREAM_WORKER_TRAINING_MODEL_KEEPER_H_
#define SLIPSTREAM_WORKER_TRAINING_MODEL_KEEPER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "common/model_file/model_header.h"
#include "common/settings/run_spec.h"
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

/// The metadata key with the number of the run that made a model.
inline constexpr char kModelRun[] = "run_id";

/// Returns the metadata of a model of this run: `run`, `seed`, the facts, and run_yaml with all
/// settings, so that the file alone says what it holds and how it was made. If the settings
/// describe model and data, there is `preset` or `layers`, and `data_format`, too. All values are
/// text, as the format demands.
ModelMetadata DescribeModel(const RunSpec& settings, const ModelFacts& facts);

/// Saves a run's weights in one directory: the final ones as model.safetensors, others as
/// model-epoch-<epoch, four digits>.safetensors. Nothing is deleted; only files of the same name
/// are replaced, and those of other runs only where that is allowed.
///
/// Thread-safe: const after construction.
class ModelKeeper {
 public:
  /// `run`: the number of the run. `directories`: where to save, the first that works; empty ones
  /// are left out, and if there is none, nothing is kept.
  ModelKeeper(uint64_t run, const std::vector<std::string>& directories, RunSpec settings,
              TensorLayout layout);

  bool keeps() const { return !directories_.empty(); }

  /// Finds out whether the final weights could be saved now: makes the directory, begins a file,
  /// and looks for room and for a model of another run. On failure DATA_LOSS names the first
  /// directory and what is wrong with it. REQUIRES: keeps().
  absl::Status Try() const;

  /// Saves `weights` and what belongs to the model beside them, creates the directory if it is
  /// missing, and returns the file's absolute path. On failure DATA_LOSS names the path in the
  /// first directory and the reason, and no model file has changed. REQUIRES: keeps().
  absl::StatusOr<std::string> Keep(const ModelFacts& facts, std::span<const float> weights,
                                   const std::vector<StoredTensor>& beside = {}) const;

 private:
  /// Returns what `use` returns for the path of `name` in the first directory where that works.
  template <typename Result>
  Result InFirst(const std::string& name,
                 const std::function<Result(const std::string& path)>& use) const;

  /// Returns DATA_LOSS if a model of another run is there and may not be replaced.
  absl::Status CheckReplaceable(const std::string& path) const;

  const std::string run_;
  std::vector<std::string> directories_;
  const RunSpec settings_;
  const TensorLayout layout_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_MODEL_KEEPER_H_
