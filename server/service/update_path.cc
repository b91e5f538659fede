#include "server/service/update_path.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/update.h"

namespace slipstream {
namespace {

/// Gives `pass` each piece with the position of its first value, and lets go of it afterwards:
/// while one push is read, the room of what is read already serves the next.
template <typename Pass>
void Consume(PushPayload& payload, Pass pass) {
  size_t begin = 0;
  for (ReceivedValues& piece : payload.pieces) {
    pass(begin, piece);
    begin += piece.count();
    piece = ReceivedValues();
  }
}

}  // namespace

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

std::optional<Weights> UpdatePath::Run(UpdateJob&& job) {
  // The last gradient of a round is read by the update itself.
  const bool fuses_last = job.update.has_value() && !job.folds.empty();
  const size_t folded = job.folds.size() - (fuses_last ? 1 : 0);
  for (size_t i = 0; i < folded; ++i) FoldIn(job.folds[i]);
  if (!job.update.has_value()) return std::nullopt;
  newest_ = Apply(*job.update, fuses_last ? &job.folds.back() : nullptr);
  return newest_;
}

void UpdatePath::FoldIn(FoldStep& step) {
  PS_CHECK(step.fold.first == (sum_ == nullptr));
  if (sum_ == nullptr) sum_ = pool_.Take();
  Consume(step.payload, [&](size_t begin, const ReceivedValues& piece) {
    FoldGradient(sum_->values().subspan(begin, piece.count()), piece.segments(), step.fold.weight,
                 step.fold.first);
  });
}

Weights UpdatePath::Apply(const Update& update, FoldStep* last) {
  if (update.is_empty) return newest_;
  std::shared_ptr<FloatBuffer> next = std::exchange(sum_, nullptr);
  const bool has_sum = next != nullptr;
  if (!has_sum) next = pool_.Take();
  const std::span<float> all = next->values();
  const auto apply = [&](size_t begin, size_t count, const Segments* gradient) {
    const std::span<float> out = all.subspan(begin, count);
    UpdateRange(begin, out,
                {.sum = has_sum ? std::span<const float>(out) : std::span<const float>(),
                 .last = gradient,
                 .last_weight = last == nullptr ? 1.0f : last->fold.weight,
                 .inverse_divisor = update.inverse_divisor},
                update.learning_rate);
  };
  if (last == nullptr) {
    apply(0, all.size(), nullptr);
  } else {
    Consume(last->payload, [&](size_t begin, const ReceivedValues& piece) {
      apply(begin, piece.count(), &piece.segments());
    });
  }
  std::swap(velocity_, velocity_next_);
  return next;
}

void UpdatePath::UpdateRange(size_t begin, std::span<float> out, const CombinedGradient& gradient,
                             float rate) {
  const std::span<const float> in = newest_->values().subspan(begin, out.size());
  const auto decay = static_cast<float>(optimizer_.weight_decay);
  if (optimizer_.kind == OptimizerSpec::Kind::kMomentum) {
    MomentumUpdate(in, out, velocity_->values().subspan(begin, out.size()),
                   velocity_next_->values().subspan(begin, out.size()), gradient, rate,
                   static_cast<float>(optimizer_.momentum), decay);
  } else {
    SgdUpdate(in, out, gradient, rate, decay);
  }
}

}  // namespace slipstream
