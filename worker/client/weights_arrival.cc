#include "worker/client/weights_arrival.h"

#include <fmt/format.h>

#include "common/kernels/copy_values.h"

namespace slipstream {

absl::Status WeightsArrival::Take(const std::optional<WeightsHeader>& header, uint64_t offset,
                                  const ReceivedValues& values) {
  if (header.has_value() == header_.has_value()) {
    return absl::InternalError(header ? "weights: a second header" : "weights: no header");
  }
  if (header) header_ = header;
  if (header_->count != target_.size()) {
    return absl::InternalError(
        fmt::format("weights: {} values, expected {}", header_->count, target_.size()));
  }
  if (offset != arrived_ || values.count() > target_.size() - arrived_) {
    return absl::InternalError(
        fmt::format("weights: values from {} on, expected those from {} on", offset, arrived_));
  }
  CopyValues(values.segments(), target_.subspan(arrived_, values.count()));
  arrived_ += values.count();
  return absl::OkStatus();
}

}  // namespace slipstream
