#include "tests/simulation/sim_checkpoints.h"

#include <utility>

#include "server/core/shard_return.h"

namespace slipstream {

void SimCheckpoints::Add(SimCheckpoint checkpoint, uint32_t keep,
                         const std::optional<SavedVersion>& safe) {
  const SavedVersion saved = checkpoint.saved;
  all_.insert_or_assign(saved, std::move(checkpoint));
  while (all_.size() > keep && (!safe.has_value() || all_.begin()->first < *safe)) {
    all_.erase(all_.begin());
  }
}

void SimCheckpoints::RemoveAfter(const SavedVersion& from) {
  all_.erase(all_.upper_bound(from), all_.end());
}

std::vector<SavedVersion> SimCheckpoints::saved() const {
  std::vector<SavedVersion> saved;
  for (const auto& [which, checkpoint] : all_) saved.push_back(which);
  return saved;
}

const SimCheckpoint* SimCheckpoints::Find(const SavedVersion& which) const {
  const auto found = all_.find(which);
  return found == all_.end() ? nullptr : &found->second;
}

SimSaves::SimSaves(const Options& options, const std::shared_ptr<Process>& process,
                   EventQueue& queue, SimCheckpoints& disk)
    : options_(options),
      process_(process),
      queue_(queue),
      disk_(disk),
      chance_(options.seed, options.stream) {}

void SimSaves::Begin(const ShardSave& save) {
  waiting_.push_back(
      {.saved = save.version(), .state = EncodeShardState(save.state), .values = save.values});
  WriteNext();
}

void SimSaves::WriteNext() {
  if (is_writing_ || waiting_.empty()) return;
  is_writing_ = true;
  const absl::Duration time = chance_.Time(absl::Microseconds(10), options_.time_max);
  queue_.After(time, [this, write = ++writes_] {
    if (process_->is_dead || write != writes_) return;
    is_writing_ = false;
    disk_.Add(std::move(waiting_.front()), options_.keep, safe_);
    waiting_.pop_front();
    WriteNext();
  });
}

void SimSaves::GiveUp() {
  ++writes_;
  is_writing_ = false;
  waiting_.clear();
}

}  // namespace slipstream
