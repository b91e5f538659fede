#ifndef SLIPSTREAM_SERVER_DATA_PLANE_TRAINING_STATE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_TRAINING_STATE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/kernels/fold.h"
#include "common/kernels/rules/tensor_rules.h"
#include "common/kernels/rules/update_rule.h"
#include "common/layout/tensor_layout.h"
#include "common/policy/staleness_compensation.h"
#include "common/protocol/tensor_set.h"
#include "common/settings/run_spec.h"
#include "server/core/shard/shard_output.h"
#include "server/data_plane/in_place_weights.h"
#include "server/data_plane/push_assembly.h"
#include "server/data_plane/shard_save.h"
#include "server/data_plane/tensor_checksums.h"
#include "server/data_plane/update_draft.h"
#include "server/data_plane/update_range.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// One gradient to be folded, with its payload.
struct FoldStep {
  Fold fold;
  PushPayload payload;
};

/// The folds and the update that the core ordered in one decision.
struct UpdateJob {
  std::vector<FoldStep> folds;
  std::optional<Update> update;
};

/// The values of one shard: the newest weights, the optimizer state and the open round's sum, and
/// the kernels that turn one version into the next. Weights and state are written out of place,
/// unless the policy adds in place: see in_place_weights.h.
///
/// Not thread-safe: one owner, which runs the jobs one after another in the order of decisions.
/// Where gradients are added in place, jobs may run side by side after the initial weights' one.
class TrainingState {
 public:
  /// Makes the state with memory for two versions and the optimizer's state. Returns null if there
  /// is not enough. `range` is the shard's part of the layout.
  static std::unique_ptr<TrainingState> TryMake(const OptimizerSpec& optimizer,
                                                const TensorLayout& layout,
                                                const ParameterRange& range, bool adds_in_place);

  /// Returns a buffer for the initial weights.
  std::shared_ptr<FloatBuffer> NewWeights() { return pool_.Take(); }

  /// Returns a buffer for weights of any version; null if there is not enough memory. Thread-safe.
  std::shared_ptr<FloatBuffer> TryNewWeights() { return pool_.TryTake(); }
  void SetInitialWeights(Weights weights);

  /// The newest version's weights, or those that change in place.
  const Weights& newest() const { return newest_; }

  /// The weights that gradients are added to; null if versions are made.
  const std::shared_ptr<InPlaceWeights>& in_place() const { return in_place_; }

  /// Returns the checksums of a version, to be computed when a reader asks for them.
  std::shared_ptr<TensorChecksums> NewChecksums() const {
    return std::make_shared<TensorChecksums>(tensors_);
  }

  /// See BufferPool::KeepIdle. Thread-safe.
  void ReuseVersions(size_t more) { pool_.KeepIdle(more); }

  /// See BufferPool::Share. Thread-safe.
  void ShareVersions() { pool_.Share(); }

  /// Begins a draft of the next version, for the push that is to cause the forecast update. Returns
  /// null while there is another draft, as the buffers are for one, or if no buffer is at hand. A
  /// job that the draft does not fit cancels it.
  std::shared_ptr<UpdateDraft> BeginDraft(const Forecast& forecast);

  /// Returns the arrays and numbers of the newest version. Its arrays are left alone from then on:
  /// further updates write elsewhere. What was folded since is not part of them. REQUIRES: versions
  /// are made.
  SavedValues Save();

  /// Returns the names of the arrays that Save returns, and new buffers to be filled with the
  /// values of each. Empty if there is not enough memory.
  ArrayBuffers NewArrays();

  /// Goes on from values that were saved: from these arrays, which NewArrays made, and the numbers
  /// of `saved`.
  void Restore(ArrayBuffers arrays, const SavedValues& saved);

  /// Folds and updates; returns the new version's weights if there was an update. Lets go of each
  /// piece of a payload after the pass that reads it.
  std::optional<Weights> Run(UpdateJob& job);

  /// The number of versions that are held, and the one being made.
  size_t live_versions() const { return pool_.live(); }

 private:
  TrainingState(const OptimizerSpec& optimizer, const TensorLayout& layout,
                const ParameterRange& range)
      : rules_(std::make_shared<const TensorRules>(optimizer, layout, range)),
        row_(RowOf(optimizer.kind)),
        scaling_(RowOf(optimizer.staleness_scaling)),
        compensation_(MakeCompensation(optimizer)),
        tensors_(std::make_shared<const std::vector<ParameterRange>>(layout.TensorsWithin(range))),
        first_tensor_(layout.TensorAt(range.begin)),
        pool_(range.size()),
        scalars_(rules_->InitialScalars()) {}

  /// Returns whether the compensation folds the gradient: it brings its base weights, and these are
  /// not the newest, or the compensation wants to see all gradients.
  bool IsCompensated(const FoldStep& step) const {
    const bool is_stale = step.payload.base != nullptr && step.payload.base != newest_;
    return is_stale || scaling_.folds_fresh_gradients;
  }

  /// Returns this part of the compensation's history; nothing if it keeps none.
  std::span<float> HistoryOf(size_t begin, size_t count) const {
    return history_ == nullptr ? std::span<float>() : history_->values().subspan(begin, count);
  }

  void FoldIn(FoldStep& step);
  void AddInPlace(UpdateJob& job);

  /// Returns the version that the job's own draft holds ready; null if it has to be made.
  Weights TakeDraft(UpdateJob& job);

  /// Makes the state that was written as the next one the current one.
  void AdvanceState();

  /// Returns the arrays that the optimizer's rule keeps.
  std::span<std::shared_ptr<FloatBuffer>> States() {
    return std::span(state_).first(row_.state_arrays);
  }

  /// `last` is null if everything has been folded in.
  Weights Apply(const Update& update, FoldStep* last);

  /// Returns the rules of an update that leaves these tensors alone.
  std::shared_ptr<const TensorRules> RulesWithout(const TensorSet& absent) const;

  /// Returns the buffers for the next version, which is written to `to`.
  UpdateBuffers Buffers(std::shared_ptr<FloatBuffer> to) const;

  const std::shared_ptr<const TensorRules> rules_;
  const RuleRow& row_;
  const ScalingRow& scaling_;
  const std::unique_ptr<const StalenessCompensation> compensation_;
  const TensorChecksums::Tensors tensors_;  // The tensors, or their parts, within the shard.
  const size_t first_tensor_;               // The place in the layout of the first of them.
  BufferPool pool_;

  Weights newest_;  // The newest version, or the weights that change in place.
  std::shared_ptr<InPlaceWeights> in_place_;  // Null if versions are made.

  // The open round's sum, in the buffer that will hold the version it makes; null while nothing has
  // been folded.
  std::shared_ptr<FloatBuffer> sum_;

  // The optimizer's state, as in UpdateBuffers.
  std::array<std::shared_ptr<FloatBuffer>, kStateArraysMax> state_;
  std::array<std::shared_ptr<FloatBuffer>, kStateArraysMax> state_next_;

  // Set if somebody else holds the arrays in `state_`, so that the next update but one must not
  // write to them.
  bool is_state_saved_ = false;
  RuleScalars scalars_;  // The scalars of the newest version.

  // The array in which the compensation remembers; null if it keeps no history.
  std::shared_ptr<FloatBuffer> history_;
  uint64_t updates_ = 0;  // The number of updates made, without empty ones.

  // The draft begun last; owned by the payload it is made of.
  std::weak_ptr<UpdateDraft> draft_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_TRAINING_STATE_H_
