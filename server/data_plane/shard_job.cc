#include "server/data_plane/shard_job.h"

#include <utility>

namespace slipstream {

ShardJob::ShardJob(TrainingState& state, Work work) : state_(&state), work_(std::move(work)) {
  if (const auto* done = std::get_if<UnfinishedJob>(&work_)) {
    payload_bytes_ = done->payload_bytes;
    version_ = done->version;
  } else if (const auto* job = std::get_if<UpdateJob>(&work_)) {
    for (const FoldStep& step : job->folds) payload_bytes_ += step.payload.bytes;
    if (job->update.has_value()) version_ = job->update->to;
  }
}

ShardJob::Save ShardJob::save() const {
  const Save* const save = std::get_if<Save>(&work_);
  return save == nullptr ? nullptr : *save;
}

bool ShardJob::is_short() const {
  constexpr uint64_t kShortBytes = 512 << 10;
  const auto* const job = std::get_if<UpdateJob>(&work_);
  if (job == nullptr) return !is_initial();
  if (job->folds.size() > 1) return false;
  // An update of what was folded before reads the whole shard.
  if (job->folds.empty()) return !job->update.has_value() || job->update->is_empty;
  if (payload_bytes_ <= kShortBytes) return true;
  const std::shared_ptr<UpdateDraft>& draft = job->folds.front().payload.draft;
  const bool is_drafted = job->update.has_value() && job->update->is_drafted;
  return is_drafted && draft != nullptr && draft->IsComplete();
}

void ShardJob::Run() {
  if (auto* job = std::get_if<UpdateJob>(&work_)) {
    result_.made = state_->Run(*job);
  } else if (auto* initial = std::get_if<Initial>(&work_)) {
    if (initial->start != nullptr) {
      result_.failure = Start(*initial->start);
    } else {
      state_->SetInitialWeights(initial->weights);
      result_.made = std::move(initial->weights);
    }
  } else if (auto* save = std::get_if<Save>(&work_)) {
    (*save)->values = state_->Save();
  } else if (version_.has_value()) {
    result_.made = Weights();
  }
}

absl::Status ShardJob::Start(const StartOfShard& start) {
  ArrayBuffers arrays = state_->NewArrays();
  if (arrays.empty()) {
    return absl::ResourceExhaustedError("there is not enough memory to read the checkpoint");
  }
  if (!start.takes_optimizer_state) arrays.resize(1);
  absl::StatusOr<RunStart> read = start.read(start.layout, start.range, arrays);
  if (!read.ok()) return read.status();
  result_.started_from = std::move(read->from);
  result_.made = arrays.front().second;
  if (arrays.size() == 1) {
    state_->SetInitialWeights(*result_.made);
  } else {
    state_->Restore(std::move(arrays),
                    {.arrays = {}, .scalars = read->scalars, .updates = read->updates});
  }
  return absl::OkStatus();
}

}  // namespace slipstream
