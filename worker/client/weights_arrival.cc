#include "worker/client/weights_arrival.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/kernels/copy_values.h"
#include "common/kernels/value_changes.h"

namespace slipstream {

void WeightsArrival::StartTry() {
  // The next try may bring whole values, which come in other pieces.
  if (std::exchange(comes_as_changes_, false)) arrived_ = 0;
  has_begun_ = false;
  position_ = 0;
}

void WeightsArrival::Begin(const WeightsHeader& header) {
  has_begun_ = true;
  if (!Holds(header.generation, header.version)) held_.reset();
  const bool replaces =
      header_ && (header_->version != header.version || header_->generation != header.generation);
  header_ = header;
  if (!replaces) return;
  arrived_ = 0;
  told_ = 0;
}

absl::Status WeightsArrival::Take(const std::optional<WeightsHeader>& header, uint64_t offset,
                                  const Segments& values, const std::function<bool()>& is_intact) {
  const size_t count = TotalBytes(values) / sizeof(float);
  if (absl::Status begun = BeginIfHeader(header); !begun.ok()) return begun;
  if (header && header->unchanged) return TakeHeld(*header, count);
  if (offset != position_ || count > target_.size() - position_) {
    return absl::InternalError(
        fmt::format("weights: values from {} on, expected those from {} on", offset, position_));
  }
  position_ += count;
  if (position_ <= arrived_) return absl::OkStatus();  // The values came with an earlier try.
  if (offset < arrived_) {
    return absl::InternalError("weights: cut into other chunks than by the try before");
  }
  CopyValues(values, target_.subspan(offset, count), StoresFor(target_.size_bytes()));
  if (is_intact && !is_intact()) {
    held_.reset();  // The held version was overwritten.
    return absl::UnavailableError("weights: taken back by the shard before they were copied");
  }
  arrived_ = position_;
  if (!is_complete()) Tell(arrived_);
  return absl::OkStatus();
}

absl::Status WeightsArrival::BeginIfHeader(const std::optional<WeightsHeader>& header) {
  if (header.has_value() == has_begun_) {
    return absl::InternalError(header ? "weights: a second header" : "weights: no header");
  }
  if (header && header->count != target_.size()) {
    return absl::InternalError(
        fmt::format("weights: {} values, expected {}", header->count, target_.size()));
  }
  if (header) Begin(*header);
  return absl::OkStatus();
}

absl::Status WeightsArrival::TakeChanges(const std::optional<WeightsHeader>& header,
                                         const ValueChanges& changes) {
  if (absl::Status begun = BeginIfHeader(header); !begun.ok()) return begun;
  comes_as_changes_ = true;
  const bool fits = changes.offset == position_ && changes.count <= target_.size() - position_;
  if (!fits || changed_from_.size() != target_.size()) {
    return absl::InternalError("weights: changes of other values than were asked for");
  }
  if (!ApplyChanges(changes.blocks, changed_from_.subspan(position_, changes.count),
                    target_.subspan(position_, changes.count))) {
    return absl::InternalError("weights: changes that cannot be applied");
  }
  position_ += changes.count;
  arrived_ = position_;
  if (!is_complete()) Tell(arrived_);
  return absl::OkStatus();
}

absl::Status WeightsArrival::TakeHeld(const WeightsHeader& header, size_t count) {
  if (!Holds(header.generation, header.version) || count > 0) {
    return absl::InternalError(
        fmt::format("weights: version {} is said to be here, and is not", Value(header.version)));
  }
  arrived_ = position_ = target_.size();
  return absl::OkStatus();
}

void WeightsArrival::Tell(size_t end) {
  if (listener_ != nullptr && end > told_) {
    listener_->WeightsArrived({begin_ + told_, begin_ + end});
  }
  told_ = end;
}

void WeightsArrival::Finish() {
  PS_CHECK(is_complete());
  Tell(arrived_);
}

}  // namespace slipstream
