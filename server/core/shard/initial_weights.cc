#include "server/core/shard/initial_weights.h"

#include <fmt/format.h>

#include <utility>

namespace slipstream {

absl::Status InitialWeights::Check(const InitializeHeader& header,
                                   const std::optional<ShardPlan>& plan, Phase phase) const {
  if (!plan.has_value() || grant_ == 0) {
    return absl::UnavailableError("no client has been granted initialisation yet");
  }
  if (header.shard_map != plan->shard_map) {
    return absl::FailedPreconditionError("WRONG_SHARD_MAP: the model was cut by another map");
  }
  if (header.grant > grant_) {
    return absl::UnavailableError(
        fmt::format("grant {} is on its way, {} is known", header.grant, grant_));
  }
  if (header.grant < grant_ || header.identity != initializer_) {
    return absl::FailedPreconditionError(
        fmt::format("initialisation is granted to worker {} under grant {}",
                    Value(initializer_.worker), grant_));
  }
  if (header.count != plan->count) {
    return absl::InvalidArgumentError(fmt::format(
        "SHAPE_MISMATCH: this shard holds {} values, {} are announced", plan->count, header.count));
  }
  if (phase > Phase::kInitializing) {
    return absl::FailedPreconditionError("the model has its initial weights");
  }
  return absl::OkStatus();
}

bool InitialWeights::Receive(uint64_t grant) {
  return std::exchange(received_grant_, grant) != grant;
}

bool InitialWeights::Place(uint64_t grant) {
  initialized_grant_ = grant;
  return !std::exchange(is_initialized_, true);
}

}  // namespace slipstream
