#include "server/service/shard_job.h"

#include <memory>
#include <utility>

namespace slipstream {

uint64_t ShardJob::payload_bytes() const {
  if (done.has_value()) return done->payload_bytes;
  uint64_t bytes = 0;
  for (const FoldStep& step : work.folds) bytes += step.payload.bytes;
  return bytes;
}

bool ShardJob::is_short() const {
  constexpr uint64_t kShortBytes = 512 << 10;
  if (initial.has_value() || work.folds.size() > 1) return false;
  // An update of what was folded before reads the whole shard.
  if (work.folds.empty()) return !work.update.has_value() || work.update->is_empty;
  if (payload_bytes() <= kShortBytes) return true;
  const std::shared_ptr<UpdateDraft>& draft = work.folds.front().payload.draft;
  const bool is_drafted = work.update.has_value() && work.update->is_drafted;
  return is_drafted && draft != nullptr && draft->IsComplete();
}

std::optional<Version> ShardJob::version() const {
  if (done.has_value()) return done->version;
  if (!work.update.has_value()) return std::nullopt;
  return work.update->to;
}

std::optional<Weights> ShardJob::Run(TrainingState& state) && {
  if (done.has_value()) {
    if (!done->version.has_value()) return std::nullopt;
    return Weights();
  }
  if (save != nullptr) {
    save->values = state.Save();
    return std::nullopt;
  }
  if (initial.has_value()) {
    state.SetInitialWeights(*initial);
    return std::move(initial);
  }
  return state.Run(std::move(work));
}

}  // namespace slipstream
