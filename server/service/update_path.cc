#include "server/service/update_path.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/update.h"

namespace slipstream {

UpdatePath::UpdatePath(const OptimizerSpec& optimizer, size_t values)
    : optimizer_(optimizer), values_(values), pool_(values) {
  if (optimizer.kind == OptimizerSpec::Kind::kMomentum) {
    velocity_ = std::make_unique<FloatBuffer>(values);
    velocity_next_ = std::make_unique<FloatBuffer>(values);
    std::ranges::fill(velocity_->values(), 0.0f);
  }
}

std::optional<Weights> UpdatePath::Run(const UpdateJob& job) {
  // The last gradient of a round is read by the update itself.
  const bool fuses_last = job.update.has_value() && !job.folds.empty();
  const size_t folded = job.folds.size() - (fuses_last ? 1 : 0);
  for (size_t i = 0; i < folded; ++i) {
    const FoldStep& step = job.folds[i];
    if (sum_ == nullptr) sum_ = std::make_unique<FloatBuffer>(values_);
    PS_CHECK(step.fold.first == !sum_holds_something_);
    FoldGradient(sum_->values(), step.payload.segments, step.fold.weight, step.fold.first);
    sum_holds_something_ = true;
  }
  if (!job.update.has_value()) return std::nullopt;
  newest_ = Apply(*job.update, fuses_last ? &job.folds.back() : nullptr);
  sum_holds_something_ = false;
  return newest_;
}

Weights UpdatePath::Apply(const Update& update, const FoldStep* last) {
  if (update.is_empty) return newest_;
  CombinedGradient gradient = {.inverse_divisor = update.inverse_divisor};
  if (sum_holds_something_) gradient.sum = sum_->values();
  if (last != nullptr) {
    gradient.last = &last->payload.segments;
    gradient.last_weight = last->fold.weight;
  }
  const auto decay = static_cast<float>(optimizer_.weight_decay);
  std::shared_ptr<FloatBuffer> next = pool_.Take();
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
