#include <fmt/format.h>

#include <string>
#include <utility>

#include "server/service/shard_engine.h"

// How the shard gets its model: the room for it, and its first weights.

namespace slipstream {

std::string ShardEngine::TakeModel(const ServerOrders& orders) {
  if (!orders.model.has_value() || core_.has_plan()) return "";
  const ParameterRange range = orders.model->shard_map.range(options_.shard);
  if (std::string failure = MakePath(range.size()); !failure.empty()) return failure;
  core_.SetPlan({.run = orders.run,
                 .shard_map = orders.model->shard_map.fingerprint(),
                 .count = range.size(),
                 .batches_total = orders.model->batches_total,
                 .examples_per_epoch = orders.model->examples_per_epoch});
  return "";
}

std::string ShardEngine::MakePath(size_t values) {
  const RunSpec& run = options_.run;
  const uint64_t gradients = uint64_t{run.cluster.workers} * run.training.pipeline_depth;
  const uint64_t needed = ShardBytesNeeded(values, gradients, run.optimizer);
  const uint64_t available = options_.memory_available();
  if (needed <= available) path_ = UpdatePath::TryMake(run.optimizer, values);
  if (path_ != nullptr) return "";
  return fmt::format(
      "the model is too large for this server: {} of weights, which with {} gradient{} under way "
      "can take {} ({} bytes) of memory, and {} are free; use more servers or a smaller model",
      BytesText(values * sizeof(float)), gradients, gradients == 1 ? "" : "s", BytesText(needed),
      needed, BytesText(available));
}

absl::Status ShardEngine::CheckInitializer(const InitializeHeader& header) const {
  if (!failure_.empty()) return absl::ResourceExhaustedError(failure_);
  if (!core_.has_plan() || orders_.grant == 0) {
    return absl::UnavailableError("no client has been granted initialisation yet");
  }
  if (header.shard_map != orders_.model->shard_map.fingerprint()) {
    return absl::FailedPreconditionError("WRONG_SHARD_MAP: the model was cut by another map");
  }
  if (header.grant > orders_.grant) {
    return absl::UnavailableError(
        fmt::format("grant {} is on its way, {} is known", header.grant, orders_.grant));
  }
  if (header.grant < orders_.grant || header.identity != orders_.initializer) {
    return absl::FailedPreconditionError(
        fmt::format("initialisation is granted to worker {} under grant {}",
                    Value(orders_.initializer.worker), orders_.grant));
  }
  const size_t count = orders_.model->shard_map.range(options_.shard).size();
  if (header.count != count) {
    return absl::InvalidArgumentError(fmt::format(
        "SHAPE_MISMATCH: this shard holds {} values, {} are announced", count, header.count));
  }
  if (orders_.phase > Phase::kInitializing) {
    return absl::FailedPreconditionError("the model has its initial weights");
  }
  return absl::OkStatus();
}

void ShardEngine::ShareVersions() {
  UpdatePath* path = nullptr;
  {
    MutexLock lock(mutex_);
    path = path_.get();
  }
  // Memory is given back, which takes a while.
  if (path != nullptr) path->ShareVersions();
}

absl::StatusOr<std::shared_ptr<FloatBuffer>> ShardEngine::BeginInitialize(
    const InitializeHeader& header) {
  MutexLock lock(mutex_);
  if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
  return path_->NewWeights();
}

absl::Status ShardEngine::FinishInitialize(const InitializeHeader& header, Weights weights) {
  {
    MutexLock lock(mutex_);
    // Again: the grant may have gone to another client meanwhile.
    if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
    if (queued_grant_ == header.grant) return absl::OkStatus();  // A repetition.
    queued_grant_ = header.grant;
    jobs_.push_back({.initial = std::move(weights), .grant = header.grant});
    WakeThread();
  }
  return absl::OkStatus();
}

}  // namespace slipstream
