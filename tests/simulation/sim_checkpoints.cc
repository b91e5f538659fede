#include "tests/simulation/sim_checkpoints.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/layout/tensor_parts.h"
#include "server/data_plane/checkpoint_writer.h"

namespace slipstream {

SimSaves::SimSaves(const Options& options, const std::shared_ptr<Process>& process,
                   EventQueue& queue)
    : options_(options), process_(process), queue_(queue), chance_(options.seed, options.stream) {}

void SimSaves::SetModel(const ModelOrders& model) {
  range_ = model.shard_map.range(options_.shard);
  tensors_ = PartOf(model.layout, range_);
}

void SimSaves::Begin(std::shared_ptr<const ShardSave> save) {
  next_ = std::move(save);
  WriteNext();
}

void SimSaves::WriteNext() {
  if (is_writing_ || next_ == nullptr) return;
  is_writing_ = true;
  current_ = std::exchange(next_, nullptr);
  const absl::Duration time = chance_.Time(absl::Microseconds(10), options_.time_max);
  queue_.After(time, [this, write = ++writes_] {
    if (!process_->is_dead && write == writes_) OnTime();
  });
}

void SimSaves::OnTime() {
  is_writing_ = false;
  const absl::Status written = Write();
  has_failed_ = !written.ok();
  if (written.ok()) {
    saved_grant_ = current_->state.initial_weights.initialized_grant();
    current_ = nullptr;
    // A checkpoint that cannot be removed now is removed after the next one.
    (void)store_->Prune(options_.keep, safe_);
    return WriteNext();
  }
  queue_.After(CheckpointWriter::kPauseAfterFailure, [this, failed = current_, write = writes_] {
    if (process_->is_dead || write != writes_) return;
    if (next_ == nullptr) next_ = failed;
    WriteNext();
  });
  WriteNext();
}

absl::Status SimSaves::Write() {
  PS_CHECK(store_ != nullptr && tensors_.has_value());
  const ShardSave& save = *current_;
  const CheckpointFacts facts = {.run = save.state.run.plan->run,
                                 .shard = options_.shard,
                                 .range = range_,
                                 .saved = save.version(),
                                 .log = save.log};
  std::vector<CheckpointArray> arrays;
  for (const auto& [name, values] : save.values.arrays) arrays.push_back({name, values->values()});
  for (const auto& [version, values] : save.bases) {
    arrays.push_back({NameOfBase(version), values->values()});
  }
  return store_->Save(facts, *tensors_, EncodeSave(save), arrays);
}

void SimSaves::GiveUp() {
  ++writes_;
  is_writing_ = false;
  next_ = nullptr;
}

void SimSaves::End() {
  if (is_writing_ && Write().ok()) (void)store_->Prune(options_.keep, safe_);
}

}  // namespace slipstream
