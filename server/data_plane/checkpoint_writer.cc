#include "server/data_plane/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/log/log.h"

namespace slipstream {

CheckpointWriter::CheckpointWriter(Options options, std::unique_ptr<CheckpointStore> store)
    : options_(std::move(options)), store_(std::move(store)), thread_([this] { Run(); }) {}

CheckpointWriter::~CheckpointWriter() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    next_.reset();
  }
  changed_.NotifyAll();
  thread_.join();
}

void CheckpointWriter::SetModel(const TensorLayout& layout, const ParameterRange& range) {
  MutexLock lock(mutex_);
  tensors_ = PartOf(layout, range);
  range_ = range;
}

void CheckpointWriter::Write(std::shared_ptr<const ShardSave> save) {
  {
    MutexLock lock(mutex_);
    PS_CHECK(tensors_.has_value());
    next_ = std::move(save);
    is_given_up_ = false;
  }
  changed_.NotifyAll();
}

void CheckpointWriter::Keep(const std::optional<SavedVersion>& safe) {
  MutexLock lock(mutex_);
  safe_ = safe;
}

bool CheckpointWriter::HasSavedInitial(uint64_t grant) {
  MutexLock lock(mutex_);
  return saved_grant_ == grant;
}

bool CheckpointWriter::has_failed() {
  MutexLock lock(mutex_);
  return !failure_.empty();
}

bool CheckpointWriter::is_writing() {
  MutexLock lock(mutex_);
  return is_writing_;
}

bool CheckpointWriter::HasOrCannotWrite(Generation generation, Version version) {
  const std::vector<SavedVersion> all = saved();
  MutexLock lock(mutex_);
  return !failure_.empty() || std::ranges::any_of(all, [&](const SavedVersion& each) {
    return each.generation == generation && each.version == version;
  });
}

void CheckpointWriter::StopWriting() {
  MutexLock lock(mutex_);
  next_.reset();
  is_given_up_ = true;
  changed_.NotifyAll();
  while (is_writing_) changed_.Wait(mutex_);
}

void CheckpointWriter::RemoveAfter(const SavedVersion& from) {
  const absl::Status removed = store_->RemoveAfter(from);
  // They are older than any checkpoint of the new generation, so the shard would not go on from
  // them.
  if (!removed.ok()) LogWarning("old checkpoints stay", {{"reason", removed.message()}});
}

void CheckpointWriter::Finish(std::chrono::steady_clock::time_point end) {
  MutexLock lock(mutex_);
  while ((next_ != nullptr || is_writing_) && changed_.WaitUntil(mutex_, end)) {
  }
}

absl::Status CheckpointWriter::LastSave() {
  MutexLock lock(mutex_);
  // A shard that returns to a checkpoint gives up what it had yet to write.
  if (is_given_up_ || (failure_.empty() && next_ == nullptr && !is_writing_)) {
    return absl::OkStatus();
  }
  const std::string why = failure_.empty() ? "the disk was too slow" : failure_;
  return absl::DataLossError(fmt::format(
      "the last checkpoint is not in {}, and the older ones stay: {}", store_->directory(), why));
}

void CheckpointWriter::Describe(v1::ShardStatus& status) {
  MutexLock lock(mutex_);
  status.set_checkpoint_failure(failure_);
  status.set_checkpoint_failures(failures_);
  if (free_bytes_.has_value()) status.set_disk_free_bytes(*free_bytes_);
  if (written_at_ == absl::InfinitePast()) return;
  *status.mutable_checkpoint() = newest_;
  status.mutable_checkpoint()->set_age_seconds(absl::ToDoubleSeconds(options_.now() - written_at_));
}

void CheckpointWriter::Run() {
  while (true) {
    std::shared_ptr<const ShardSave> save;
    {
      MutexLock lock(mutex_);
      is_writing_ = false;
      changed_.NotifyAll();
      while (next_ == nullptr && !is_stopping_) changed_.Wait(mutex_);
      if (next_ == nullptr) return;
      save = std::move(next_);
      next_.reset();
      is_writing_ = true;
    }
    const absl::Status written = WriteNow(*save);
    const std::optional<uint64_t> free_bytes = store_->disk().FreeBytes(store_->directory());
    bool is_news = false;
    {
      MutexLock lock(mutex_);
      free_bytes_ = free_bytes;
      if (!written.ok()) ++failures_;
      is_news = failure_ != written.message();
      failure_ = std::string(written.message());
    }
    if (written.ok()) continue;
    if (is_news) {
      LogError("no checkpoint was made; the older ones stay", {{"reason", written.message()}});
    }
    // The disk may have room later. A newer checkpoint that comes meanwhile takes the place.
    MutexLock lock(mutex_);
    const auto again =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kPauseAfterFailure);
    while (next_ == nullptr && !is_stopping_ && !is_given_up_ &&
           changed_.WaitUntil(mutex_, again)) {
    }
    if (next_ == nullptr && !is_stopping_ && !is_given_up_) next_ = std::move(save);
  }
}

absl::Status CheckpointWriter::WriteNow(const ShardSave& save) {
  const absl::Time begin = options_.now();
  CheckpointFacts facts = {.run = save.state.run.plan->run,
                           .shard = options_.shard,
                           .saved = save.version(),
                           .log = save.log};
  std::optional<TensorLayout> tensors;
  std::optional<SavedVersion> safe;
  {
    MutexLock lock(mutex_);
    facts.range = range_;
    tensors = tensors_;
    safe = safe_;
  }
  std::vector<CheckpointArray> arrays;
  for (const auto& [name, values] : save.values.arrays) arrays.push_back({name, values->values()});
  for (const auto& [version, values] : save.bases) {
    arrays.push_back({NameOfBase(version), values->values()});
  }
  absl::Status written = store_->Save(facts, *tensors, EncodeSave(save), arrays);
  if (!written.ok()) return written;
  {
    MutexLock lock(mutex_);
    written_at_ = options_.now();
    saved_grant_ = save.state.initial_weights.initialized_grant();
    newest_.set_version(Value(facts.saved.version));
    newest_.set_write_seconds(absl::ToDoubleSeconds(written_at_ - begin));
    newest_.set_bytes(store_->BytesOf(facts.saved).value_or(0));
  }
  const absl::Status pruned = store_->Prune(options_.keep, safe);
  if (!pruned.ok()) LogWarning("old checkpoints stay", {{"reason", pruned.message()}});
  return absl::OkStatus();
}

}  // namespace slipstream
