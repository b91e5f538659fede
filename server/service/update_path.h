#ifndef SLIPSTREAM_SERVER_SERVICE_UPDATE_PATH_H_
#define SLIPSTREAM_SERVER_SERVICE_UPDATE_PATH_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "common/run/run_spec.h"
#include "server/core/shard_effects.h"
#include "server/service/push_assembly.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// One gradient to be folded, with its payload.
struct FoldStep {
  Fold fold;
  PushPayload payload;
};

/// What the core ordered in one decision.
struct UpdateJob {
  std::vector<FoldStep> folds;
  std::optional<Update> update;
};

/// The numbers of one shard: the newest weights, the optimizer state and the open round's sum, and
/// the kernels that turn one version into the next. Weights and state are written out of place.
///
/// Not thread-safe: one owner, which runs the jobs one after another in the order of decisions.
class UpdatePath {
 public:
  UpdatePath(const OptimizerSpec& optimizer, size_t values);

  /// A buffer for the initial weights.
  std::shared_ptr<FloatBuffer> NewWeights() { return pool_.Take(); }
  void SetInitialWeights(Weights weights) { newest_ = std::move(weights); }

  /// Folds and updates; returns the new version's weights if there was an update.
  std::optional<Weights> Run(const UpdateJob& job);

  size_t live_versions() const { return pool_.live(); }

 private:
  Weights Apply(const Update& update, const FoldStep* last);

  const OptimizerSpec optimizer_;
  const size_t values_;
  BufferPool pool_;
  Weights newest_;

  // Made at first use: no sum where every gradient is a round, no velocity without momentum.
  std::unique_ptr<FloatBuffer> sum_;
  std::unique_ptr<FloatBuffer> velocity_;
  std::unique_ptr<FloatBuffer> velocity_next_;
  bool sum_holds_something_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_UPDATE_PATH_H_
