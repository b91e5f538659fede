#include "server/core/coordinator_evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace slipstream {
namespace {

bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

void Evaluations::OnEpochs(uint32_t completed) {
  if (every_epochs_ == 0 || final_due_ || final_done_) return;
  const uint32_t epoch = completed / every_epochs_ * every_epochs_;
  if (epoch <= counted_epoch_ || epoch >= epochs_) return;
  counted_epoch_ = epoch;
  due_epoch_ = epoch;
}

void Evaluations::OnLastUpdate(uint32_t epochs_completed) {
  if (final_done_ || (open_.has_value() && open_->is_final)) return;
  final_due_ = true;
  final_epoch_ = epochs_completed;
  due_epoch_ = 0;
}

bool Evaluations::Assign(WorkerId worker) {
  if (!due()) return false;
  const uint32_t epoch = final_due_ ? final_epoch_ : due_epoch_;
  open_ = Order{++last_order_, worker, epoch, final_due_};
  final_due_ = false;
  due_epoch_ = 0;
  return true;
}

void Evaluations::Forget(WorkerId worker) {
  if (!open_.has_value() || open_->worker != worker) return;
  if (open_->is_final) {
    final_due_ = true;
  } else if (!final_due_) {
    due_epoch_ = std::max(due_epoch_, open_->epoch);
  }
  open_.reset();
}

absl::Status Evaluations::Report(WorkerId worker, uint64_t number, Evaluation result,
                                 const std::string& weights_sha256) {
  if (number != 0 && last_reported_.number == number && last_reported_.worker == worker) {
    return absl::OkStatus();
  }
  if (!open_.has_value() || open_->number != number || open_->worker != worker) {
    return absl::FailedPreconditionError(
        fmt::format("evaluation {} is not worker {}'s, or no longer", number, Value(worker)));
  }
  if (result.versions.size() > kVersionsMax) {
    return absl::InvalidArgumentError(
        fmt::format("an evaluation has at most {} versions", kVersionsMax));
  }
  if (open_->is_final && !IsSha256(weights_sha256)) {
    return absl::InvalidArgumentError(
        "the final evaluation needs the weights' SHA-256 in lower-case hex");
  }

  result.epoch = open_->epoch;
  result.is_final = open_->is_final;
  if (open_->is_final) {
    final_done_ = true;
    weights_sha256_ = weights_sha256;
  }
  results_.push_back(std::move(result));
  if (results_.size() > kResultsMax) results_.pop_front();
  last_reported_ = *open_;
  open_.reset();
  return absl::OkStatus();
}

}  // namespace slipstream
