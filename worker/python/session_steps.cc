// The part of Session that has the run's algorithm decide what a program's local steps come to.

#include <algorithm>
#include <utility>

#include "worker/python/session.h"

namespace slipstream {

Session::Local::Local(Session& session)
    : model(session.layout_, session.local_weights(), session.values_, session.weights_.span()),
      steps(session.settings_, session.epoch_examples_, model,
            session.settings_.worker.lands_apart() ? session.weights_.span() : std::span<float>(),
            session.values_),
      exchange({.push_codec = session.settings_.wire.push_codec, .layout = &session.layout_}, steps,
               *session.client_) {}

absl::StatusOr<bool> Session::BeginLocalSteps() {
  if (client_ == nullptr) {
    return absl::AlreadyExistsError("the model is not synchronized yet: call synchronize first");
  }
  EndLocalSteps();
  if (settings_.worker.lands_apart()) {
    if (own_weights_.size() == 0) own_weights_ = AlignedBuffer<float>(weights_.size());
    std::ranges::copy(weights(), own_weights_.data());
  }
  local_ = std::make_unique<Local>(*this);
  if (at_hand_.has_value()) BeginSteps();
  return at_hand_.has_value();
}

void Session::BeginSteps() {
  local_->steps.Begin();
  local_->steps.BeforeSteps();
}

void Session::EndLocalSteps() {
  AbortFragments();
  local_.reset();
}

absl::Status Session::OnGradient(std::vector<const float*> tensors) {
  if (local_ == nullptr || !at_hand_.has_value()) {
    return absl::AlreadyExistsError("there is no work at hand: call fetch first");
  }
  local_->model.SetGradient(std::move(tensors));
  local_->steps.OnGradient(at_hand_->batches.front().first);
  local_->model.SetGradient({});  // The caller frees them now.
  return absl::OkStatus();
}

bool Session::has_to_exchange() const {
  if (local_ == nullptr || !at_hand_.has_value()) return false;
  return local_->exchange.has_to_settle() ||
         local_->exchange.is_due(at_hand_->batches, local_->steps.steps());
}

absl::Status Session::ExchangeWeights() {
  if (local_->exchange.has_to_settle()) local_->exchange.Settle();
  const BatchRanges& batches = at_hand_->batches;
  // Where workers choose their own work, its mini-batches are full.
  const uint64_t examples = order_.has_value() ? local_->steps.ExamplesOf(batches)
                                               : CountOf(batches) * settings_.training.batch_size;
  return Cause(local_->exchange.ExchangeFragments(
      {.batches = batches, .examples = static_cast<uint32_t>(examples), .step = steps_ + 1},
      local_->steps.steps(), std::nullopt, [this] { return work_->Prefetch(); }));
}

absl::Status Session::BeginPushOfSteps(Values& values) {
  if (absl::Status status = CheckPush(values.examples); !status.ok()) return status;
  // Before the push begins, as it is one of what has not left.
  std::optional<std::string> nonfinite = local_->exchange.PrepareRest(std::nullopt);
  RemoveChanged(values.absent);
  if (absl::Status status = Begin(values.examples, values.label); !status.ok()) return status;
  open_->nonfinite = std::move(nonfinite);
  if (!open_->nonfinite.has_value())
    open_->feed->OnGradientReady({0, std::exchange(open_->end, 0)});
  return absl::OkStatus();
}

void Session::RemoveChanged(TensorSet& absent) const {
  const TensorSet without_gradient = std::exchange(absent, {});
  // A force is on each tensor, and a fragment leaves before it is known which have no gradient.
  if (settings_.worker.lands_apart()) return;
  for (size_t i = 0; i < layout_.tensors().size(); ++i) {
    if (!without_gradient.Has(i)) continue;
    const Tensor& tensor = layout_.tensors()[i];
    const std::span<const float> values = values_.subspan(tensor.offset, tensor.size());
    // Something else than these steps may have changed it, too.
    if (std::ranges::all_of(values, [](float value) { return value == 0; })) absent.Add(i);
  }
}

void Session::AbortFragments() {
  if (local_ == nullptr || !at_hand_.has_value() || !local_->exchange.has_begun()) return;
  client_->BeginPush(0, {.batches = at_hand_->batches});
  client_->AbortPush(0);
  at_hand_.reset();
}

}  // namespace slipstream
