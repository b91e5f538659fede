#include "server/service/update_path.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/update.h"

namespace slipstream {

std::unique_ptr<UpdatePath> UpdatePath::TryMake(const OptimizerSpec& optimizer, size_t values) {
  std::unique_ptr<UpdatePath> path(new UpdatePath(optimizer, values));
  if (!path->pool_.Reserve(2)) return nullptr;
  if (optimizer.kind == OptimizerSpec::Kind::kMomentum) {
    path->velocity_ = FloatBuffer::TryMake(values);  // 0 at first, as a velocity is.
    path->velocity_next_ = FloatBuffer::TryMake(values);
    if (path->velocity_ == nullptr || path->velocity_next_ == nullptr) return nullptr;
  }
  return path;
}

std::optional<Weights> UpdatePath::Run(const UpdateJob& job) {
  // The last gradient of a round is read by the update itself.
  const bool fuses_last = job.update.has_value() && !job.folds.empty();
  const size_t folded = job.folds.size() - (fuses_last ? 1 : 0);
  for (size_t i = 0; i < folded; ++i) {
    const FoldStep& step = job.folds[i];
    PS_CHECK(step.fold.first == (sum_ == nullptr));
    if (sum_ == nullptr) sum_ = pool_.Take();
    FoldGradient(sum_->values(), step.payload.segments, step.fold.weight, step.fold.first);
  }
  if (!job.update.has_value()) return std::nullopt;
  newest_ = Apply(*job.update, fuses_last ? &job.folds.back() : nullptr);
  return newest_;
}

Weights UpdatePath::Apply(const Update& update, const FoldStep* last) {
  if (update.is_empty) return newest_;
  CombinedGradient gradient = {.inverse_divisor = update.inverse_divisor};
  std::shared_ptr<FloatBuffer> next = std::exchange(sum_, nullptr);
  if (next != nullptr) {
    gradient.sum = next->values();
  } else {
    next = pool_.Take();
  }
  if (last != nullptr) {
    gradient.last = &last->payload.segments;
    gradient.last_weight = last->fold.weight;
  }
  const auto decay = static_cast<float>(optimizer_.weight_decay);
  if (optimizer_.kind == OptimizerSpec::Kind::kMomentum) {
    MomentumUpdate(newest_->values(), next->values(), velocity_->values(), velocity_next_->values(),
                   gradient, update.learning_rate, static_cast<float>(optimizer_.momentum), decay);
    std::swap(velocity_, velocity_next_);
  } else {
    SgdUpdate(newest_->values(), next->values(), gradient, update.learning_rate, decay);
  }
  return next;
}

}  // namespace slipstream
