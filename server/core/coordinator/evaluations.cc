#include "server/core/coordinator/evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/limits.h"

namespace slipstream {
namespace {

bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// Names a figure that no measurement can have; empty if there is none. A loss may be a NaN or an
/// infinity, as training may diverge.
std::string Impossible(const Evaluation& result) {
  const double accuracy = result.test_accuracy.value_or(0);
  if (!(accuracy >= 0 && accuracy <= 1)) {
    return fmt::format("test_accuracy is a share of the examples, and not {}", accuracy);
  }
  if (!(result.seconds >= 0 && std::isfinite(result.seconds))) {
    return fmt::format("the evaluation took {} seconds", result.seconds);
  }
  if (!(result.epochs_measured >= 0 && std::isfinite(result.epochs_measured))) {
    return fmt::format("epochs_measured is {}", result.epochs_measured);
  }
  if (result.versions.size() > kServersMax) {
    return fmt::format("an evaluation has at most {} versions", kServersMax);
  }
  return "";
}

}  // namespace

std::vector<uint32_t> Evaluations::OnEpochs(uint32_t completed) {
  epochs_completed_ = std::max(epochs_completed_, completed);
  std::vector<uint32_t> skipped;
  if (final_due_ || final_done_) return skipped;
  const uint32_t save = LastDue(save_every_epochs_, completed);
  const uint32_t epoch = std::max(LastDue(every_epochs_, completed), save);
  if (epoch <= counted_epoch_) return skipped;
  if (save > counted_save_) {
    counted_save_ = save;
    save_due_ = true;
  }
  if (open_.has_value()) {
    const uint32_t first = due_epoch_ > 0 ? due_epoch_ : counted_epoch_ + 1;
    for (uint32_t missed = first; missed < epoch; ++missed) {
      const bool was_due =
          LastDue(every_epochs_, missed) == missed || LastDue(save_every_epochs_, missed) == missed;
      if (was_due) skipped.push_back(missed);
    }
  }
  counted_epoch_ = epoch;
  due_epoch_ = epoch;
  return skipped;
}

uint32_t Evaluations::LastDue(uint32_t every, uint32_t completed) const {
  if (every == 0) return 0;
  const uint32_t epoch = completed / every * every;
  return epoch < epochs_ ? epoch : 0;
}

std::optional<uint32_t> Evaluations::OnLastUpdate(uint32_t epochs_completed) {
  epochs_completed_ = std::max(epochs_completed_, epochs_completed);
  if (final_done_ || (open_.has_value() && open_->is_final)) return std::nullopt;
  final_due_ = true;
  save_due_ = false;
  const uint32_t replaced = std::exchange(due_epoch_, 0);
  return replaced > 0 ? std::optional(replaced) : std::nullopt;
}

void Evaluations::OnMoreUpdates() {
  PS_CHECK(!final_done_);
  final_due_ = false;
  if (open_.has_value() && open_->is_final) open_.reset();
}

void Evaluations::OnSaving(WorkerId worker, Saving saving) {
  was_asked_to_save_ = was_asked_to_save_ || saving.state == Saving::State::kCan ||
                       saving.state == Saving::State::kCannot;
  saving_[worker] = std::move(saving);
}

Saving::State Evaluations::SavingOf(WorkerId worker) const {
  const auto found = saving_.find(worker);
  return found == saving_.end() ? Saving::State::kUnknown : found->second.state;
}

std::optional<WorkerId> Evaluations::Choose(const std::vector<WorkerId>& live) const {
  const auto rank = [this](WorkerId worker) {
    if (!final_due_ && !save_due_) return 0;
    switch (SavingOf(worker)) {
      case Saving::State::kNotAsked:
        break;
      case Saving::State::kCannot:
        return 1;  // It may have room again.
      case Saving::State::kUnknown:
        return 2;
      case Saving::State::kCan:
        return 3;
    }
    return 0;
  };
  std::optional<WorkerId> best;
  for (const WorkerId worker : live) {
    if (IsGivenUp(worker)) continue;
    if (!best.has_value() || rank(worker) > rank(*best)) best = worker;
  }
  return best;
}

std::string Evaluations::WhyNobodySaves(const std::vector<WorkerId>& live) const {
  std::string why;
  for (const WorkerId worker : live) {
    const Saving::State state = SavingOf(worker);
    if (state == Saving::State::kCan || state == Saving::State::kUnknown) return "";
    if (state == Saving::State::kNotAsked || !why.empty()) continue;
    why = fmt::format("worker {}: {}", Value(worker), saving_.at(worker).failure);
  }
  return why;
}

std::string Evaluations::WhyNotSaved() const {
  PS_CHECK(final_done_);
  const Evaluation& last = results_.back();
  if (!last.model_file.empty()) return "";
  if (!last.model_failure.empty() || !was_asked_to_save_) return last.model_failure;
  return "the workers that were told where to save them have left";
}

bool Evaluations::Assign(WorkerId worker) {
  if (!due()) return false;
  open_ = Order{++last_order_, worker, epochs_completed_, final_due_, final_due_ || save_due_};
  final_due_ = false;
  save_due_ = false;
  due_epoch_ = 0;
  measured_ = 0;
  return true;
}

void Evaluations::OnMeasured(WorkerId worker, uint64_t number, uint64_t examples, absl::Time now) {
  if (!open_.has_value() || open_->worker != worker || open_->number != number) return;
  if (examples <= measured_) return;
  measured_ = examples;
  heard_ = now;
}

void Evaluations::GiveUpHolder() {
  PS_CHECK(open_.has_value());
  const WorkerId holder = open_->worker;
  TakeBack(holder);
  given_up_.insert(holder);
}

void Evaluations::Forget(WorkerId worker) {
  given_up_.erase(worker);
  saving_.erase(worker);
  TakeBack(worker);
}

void Evaluations::TakeBack(WorkerId worker) {
  if (!open_.has_value() || open_->worker != worker) return;
  if (open_->is_final) {
    final_due_ = true;
  } else if (!final_due_) {
    due_epoch_ = std::max(due_epoch_, open_->epoch);
    save_due_ = save_due_ || open_->saves;
  }
  open_.reset();
}

absl::Status Evaluations::Report(WorkerId worker, uint64_t number, Evaluation result,
                                 const std::string& weights_sha256,
                                 const std::vector<WorkerId>& live) {
  if (number != 0 && last_reported_.number == number && last_reported_.worker == worker) {
    return absl::OkStatus();
  }
  if (!open_.has_value() || open_->number != number || open_->worker != worker) {
    return absl::FailedPreconditionError(
        fmt::format("evaluation {} is not worker {}'s, or no longer", number, Value(worker)));
  }
  if (const std::string impossible = Impossible(result); !impossible.empty()) {
    return absl::InvalidArgumentError(impossible);
  }
  for (const std::string* text : {&result.model_file, &result.model_host, &result.model_failure}) {
    if (text->size() <= kTextBytesMax) continue;
    return absl::InvalidArgumentError(
        fmt::format("what is said of a saved model has at most {} bytes", kTextBytesMax));
  }
  if (open_->is_final && !IsSha256(weights_sha256)) {
    return absl::InvalidArgumentError(
        "the final evaluation needs the weights' SHA-256 in lower-case hex");
  }

  last_reported_ = *open_;
  if (!result.model_failure.empty()) {
    OnSaving(worker, {Saving::State::kCannot, result.model_failure});
    const bool another_can = std::ranges::any_of(live, [&](WorkerId other) {
      return !IsGivenUp(other) && SavingOf(other) == Saving::State::kCan;
    });
    if (open_->is_final && another_can) {
      final_due_ = true;
      open_.reset();
      return absl::OkStatus();
    }
  }
  result.number = open_->number;
  result.epoch = open_->epoch;
  result.is_final = open_->is_final;
  if (open_->is_final) {
    final_done_ = true;
    weights_sha256_ = weights_sha256;
  }
  results_.push_back(std::move(result));
  if (results_.size() > kResultsMax) results_.pop_front();
  open_.reset();
  return absl::OkStatus();
}

}  // namespace slipstream
