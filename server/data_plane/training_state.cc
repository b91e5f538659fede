#include "server/data_plane/training_state.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/kernels/fold.h"
#include "server/storage/checkpoint_manifest.h"

namespace slipstream {
namespace {

// The names of arrays in a checkpoint.
constexpr char kHistoryArray[] = "history";

std::string NameOfState(size_t number) { return "state" + std::to_string(number); }

/// Gives `pass` each piece with the position of its first value, and lets go of the piece
/// afterwards: while one push is read, the memory of pieces already read serves the next push.
template <typename Pass>
void Consume(PushPayload& payload, Pass pass) {
  size_t begin = 0;
  for (std::shared_ptr<const ReceivedValues>& piece : payload.pieces) {
    pass(begin, *piece);
    begin += piece->count();
    piece.reset();
  }
}

}  // namespace

std::unique_ptr<TrainingState> TrainingState::TryMake(const OptimizerSpec& optimizer,
                                                      const TensorLayout& layout,
                                                      const ParameterRange& range,
                                                      bool adds_in_place) {
  const size_t values = range.size();
  std::unique_ptr<TrainingState> made(new TrainingState(optimizer, layout, range));
  if (!made->pool_.Reserve(2)) return nullptr;
  const uint32_t states = made->row_.state_arrays;
  PS_CHECK(states <= kStateArraysMax);
  for (uint32_t i = 0; i < states; ++i) {
    made->state_[i] = FloatBuffer::TryMake(values);  // 0 at first, as a rule's state is.
    made->state_next_[i] = FloatBuffer::TryMake(values);
    if (made->state_[i] == nullptr || made->state_next_[i] == nullptr) return nullptr;
  }
  if (made->scaling_.keeps_history) {
    made->history_ = FloatBuffer::TryMake(values);
    if (made->history_ == nullptr) return nullptr;
  }
  if (adds_in_place) {
    PS_CHECK(made->row_.adds());
    made->in_place_ = std::make_shared<InPlaceWeights>(made->pool_);
    made->newest_ = made->in_place_->live();
  }
  return made;
}

void TrainingState::SetInitialWeights(Weights weights) {
  if (in_place_ != nullptr) return in_place_->Set(*weights);
  newest_ = std::move(weights);
}

std::shared_ptr<UpdateDraft> TrainingState::BeginDraft(const Forecast& forecast) {
  if (!draft_.expired()) return nullptr;
  std::shared_ptr<FloatBuffer> to = pool_.TakeAtOnce();  // The engine's lock is held.
  if (to == nullptr) return nullptr;
  auto draft = std::make_shared<UpdateDraft>(rules_, forecast, Buffers(std::move(to)));
  draft_ = draft;
  return draft;
}

Weights TrainingState::TakeDraft(UpdateJob& job) {
  const std::shared_ptr<UpdateDraft> draft = draft_.lock();
  draft_.reset();
  if (draft == nullptr) return nullptr;
  const bool is_update =
      job.update.has_value() && job.update->is_drafted && job.folds.front().payload.draft == draft;
  if (!is_update) {
    draft->Cancel();
    return nullptr;
  }
  std::optional<UpdateBuffers> made = draft->Take();
  if (!made.has_value()) return nullptr;
  ++updates_;
  AdvanceState();
  return std::move(made->to);
}

SavedValues TrainingState::Save() {
  PS_CHECK(in_place_ == nullptr);
  SavedValues saved = {
      .arrays = {{kWeightsArray, newest_}}, .scalars = scalars_, .updates = updates_};
  for (const std::shared_ptr<FloatBuffer>& state : States()) {
    saved.arrays.emplace_back(NameOfState(saved.arrays.size() - 1), state);
  }
  is_state_saved_ = row_.state_arrays > 0;
  if (history_ != nullptr) {
    // It is written in place, so what is saved is a copy.
    std::shared_ptr<FloatBuffer> copy = pool_.Take();
    std::ranges::copy(history_->values(), copy->values().begin());
    saved.arrays.emplace_back(kHistoryArray, std::move(copy));
  }
  return saved;
}

ArrayBuffers TrainingState::NewArrays() {
  ArrayBuffers arrays;
  arrays.emplace_back(kWeightsArray, pool_.TryTake());
  for (uint32_t i = 0; i < row_.state_arrays; ++i) {
    arrays.emplace_back(NameOfState(i), pool_.TryTake());
  }
  if (history_ != nullptr) arrays.emplace_back(kHistoryArray, pool_.TryTake());
  const auto is_missing = [](const auto& array) { return array.second == nullptr; };
  if (std::ranges::any_of(arrays, is_missing)) arrays.clear();
  return arrays;
}

void TrainingState::Restore(ArrayBuffers arrays, const SavedValues& saved) {
  PS_CHECK(in_place_ == nullptr);
  draft_.reset();
  sum_.reset();
  newest_ = arrays.front().second;
  for (uint32_t i = 0; i < row_.state_arrays; ++i) state_[i] = arrays[1 + i].second;
  is_state_saved_ = false;
  if (history_ != nullptr) history_ = arrays.back().second;
  scalars_ = saved.scalars;
  updates_ = saved.updates;
}

std::optional<Weights> TrainingState::Run(UpdateJob& job) {
  if (in_place_ != nullptr) {
    AddInPlace(job);
    return newest_;
  }
  if (Weights drafted = TakeDraft(job); drafted != nullptr) {
    job.folds.clear();
    newest_ = std::move(drafted);
    return newest_;
  }
  // The update itself reads the last gradient of a round, unless that has to be compensated first.
  const bool fuses_last =
      job.update.has_value() && !job.folds.empty() && !IsCompensated(job.folds.back());
  const size_t folded = job.folds.size() - (fuses_last ? 1 : 0);
  for (size_t i = 0; i < folded; ++i) FoldIn(job.folds[i]);
  if (!job.update.has_value()) return std::nullopt;
  newest_ = Apply(*job.update, fuses_last ? &job.folds.back() : nullptr);
  return newest_;
}

void TrainingState::AddInPlace(UpdateJob& job) {
  PS_CHECK(job.update.has_value() && job.folds.size() == 1);
  const Update& update = *job.update;
  FoldStep& step = job.folds.front();
  const std::shared_ptr<const TensorRules> rules = RulesWithout(update.absent);
  const InPlaceWeights::Terms terms = {
      .weight = step.fold.clip * step.fold.weight,
      .inverse_divisor = update.inverse_divisor,
      .step = {.rate = update.learning_rate, .scale = update.step_scale},
      .rules = rules.get()};
  Consume(step.payload,
          [&](size_t begin, const ReceivedValues& piece) { in_place_->Add(begin, piece, terms); });
}

void TrainingState::FoldIn(FoldStep& step) {
  PS_CHECK(step.fold.first == (sum_ == nullptr));
  if (sum_ == nullptr) sum_ = pool_.Take();
  const Fold fold = step.fold;
  Consume(step.payload, [&](size_t begin, const ReceivedValues& piece) {
    const std::span<float> sum = sum_->values().subspan(begin, piece.count());
    if (!IsCompensated(step)) {
      return FoldGradient(sum, piece.segments(), fold.clip * fold.weight, fold.first);
    }
    const Weights& base = step.payload.base == nullptr ? newest_ : step.payload.base;
    const MovedWeights weights = {base->values().subspan(begin, piece.count()),
                                  newest_->values().subspan(begin, piece.count())};
    compensation_->Fold(sum, piece.segments(), weights, HistoryOf(begin, piece.count()),
                        {.clip = fold.clip, .weight = fold.weight, .first = fold.first});
  });
  step.payload.base.reset();
}

Weights TrainingState::Apply(const Update& update, FoldStep* last) {
  if (update.is_empty) return newest_;
  std::shared_ptr<FloatBuffer> next = std::exchange(sum_, nullptr);
  const bool has_sum = next != nullptr;
  if (!has_sum) next = pool_.Take();
  const UpdateBuffers buffers = Buffers(next);
  const std::span<const float> sum = next->values();
  const StepSize step = {.rate = update.learning_rate, .scale = update.step_scale};
  const std::shared_ptr<const TensorRules> rules = RulesWithout(update.absent);
  const auto apply = [&](size_t begin, size_t count, const Segments* gradient) {
    UpdateRange(*rules, buffers, begin, count,
                {.sum = has_sum ? sum.subspan(begin, count) : std::span<const float>(),
                 .last = gradient,
                 .last_weight = last == nullptr ? 1.0f : last->fold.clip * last->fold.weight,
                 .inverse_divisor = update.inverse_divisor},
                step);
  };
  if (last == nullptr) {
    apply(0, sum.size(), nullptr);
  } else {
    Consume(last->payload, [&](size_t begin, const ReceivedValues& piece) {
      apply(begin, piece.count(), &piece.segments());
    });
    last->payload.base.reset();
  }
  if (row_.measures_tensors) FinishTensors(*rules, buffers, *tensors_, step);
  ++updates_;
  if (history_ != nullptr) {
    compensation_->OnUpdate(newest_->values(), next->values(), updates_, history_->values());
  }
  AdvanceState();
  return next;
}

std::shared_ptr<const TensorRules> TrainingState::RulesWithout(const TensorSet& absent) const {
  if (absent.empty() || row_.counts_updates) return rules_;
  std::vector<ParameterRange> ranges;
  for (size_t i = 0; i < tensors_->size(); ++i) {
    if (absent.Has(first_tensor_ + i)) ranges.push_back((*tensors_)[i]);
  }
  return std::make_shared<const TensorRules>(rules_->Without(ranges));
}

UpdateBuffers TrainingState::Buffers(std::shared_ptr<FloatBuffer> to) const {
  UpdateBuffers buffers = {.from = newest_,
                           .to = std::move(to),
                           .state_next = state_next_,
                           .scalars = rules_->Next(scalars_)};
  std::ranges::copy(state_, buffers.state.begin());
  return buffers;
}

void TrainingState::AdvanceState() {
  std::swap(state_, state_next_);
  if (std::exchange(is_state_saved_, false)) {
    for (uint32_t i = 0; i < row_.state_arrays; ++i) state_next_[i] = pool_.Take();
  }
  scalars_ = rules_->Next(scalars_);
}

}  // namespace slipstream
