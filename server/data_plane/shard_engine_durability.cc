// The part of ShardEngine that deals with checkpoints and the log.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/log/log.h"
#include "server/data_plane/shard_engine.h"
#include "server/storage/log_segment.h"

namespace slipstream {

// The place for checkpoints.

void ShardEngine::OpenStore(uint64_t run, Phase phase) {
  {
    MutexLock lock(mutex_);
    if (options_.open_store == nullptr || run == 0 || checkpoints_ != nullptr) return;
  }
  // Without the lock, as a disk may be slow. Only the thread that brings orders comes here.
  absl::StatusOr<std::unique_ptr<CheckpointStore>> store =
      options_.open_store(run, phase >= Phase::kTraining);
  absl::Status failure = store.status();
  uint64_t last_segment = 0;
  if (failure.ok() && options_.run.durability.keeps_log()) {
    const absl::StatusOr<std::vector<uint64_t>> segments =
        ListSegments((*store)->disk(), (*store)->directory());
    failure = segments.status();
    if (failure.ok() && !segments->empty()) last_segment = segments->back();
  }
  bool is_news = false;
  {
    MutexLock lock(mutex_);
    is_news = failure != store_failure_;
    store_failure_ = failure;
    if (failure.ok()) {
      checkpoints_ = std::make_shared<CheckpointWriter>(
          CheckpointWriter::Options{
              .shard = options_.shard, .keep = options_.run.durability.keep, .now = options_.now},
          *std::move(store));
      last_segment_ = last_segment;
      NoteModel();
      if (unsaved_ != nullptr) checkpoints_->Write(std::exchange(unsaved_, nullptr));
    }
  }
  // Another process may read it: only this one has to end, and not the run.
  if (absl::IsFailedPrecondition(failure)) return LoseLog(failure);
  if (!failure.ok() && is_news) {
    LogWarning("the directory for checkpoints cannot be used", {{"reason", failure.message()}});
  }
}

void ShardEngine::NoteModel() {
  if (checkpoints_ == nullptr || !orders_.model.has_value()) return;
  checkpoints_->SetModel(orders_.model->layout, orders_.model->shard_map.range(options_.shard));
}

std::optional<std::vector<SavedVersion>> ShardEngine::Saved() {
  uint64_t run = 0;
  Phase phase{};
  {
    MutexLock lock(mutex_);
    run = orders_.run;
    phase = orders_.phase;
  }
  OpenStore(run, phase);
  std::shared_ptr<CheckpointWriter> checkpoints;
  Answers answers;
  {
    MutexLock lock(mutex_);
    checkpoints = checkpoints_;
    // The orders that came before the place was open.
    if (log_stage_ == LogStage::kNotBegun) answers = GiveOrders();
  }
  Deliver(std::move(answers));
  if (checkpoints == nullptr) return std::nullopt;
  return checkpoints->saved();
}

absl::Status ShardEngine::Drain(absl::Duration time) {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(time);
  std::shared_ptr<CheckpointWriter> checkpoints;
  std::shared_ptr<const ShardSave> save;
  Answers answers;
  bool has_log = false;
  bool saves = false;
  {
    MutexLock lock(mutex_);
    if (checkpoints_ == nullptr) return absl::OkStatus();
    checkpoints = checkpoints_;
    has_log = log_stage_ != LogStage::kNone;
    // A shard that is on its way to another version has nothing newer to save.
    saves = !has_log && shard_->machine().goes_alone() && !shard_->is_returning();
    is_draining_ = saves || has_log;
    if (is_draining_) answers = Absorb(shard_->BeginReturn());
  }
  Deliver(std::move(answers));
  if (has_log) FinishLog(end);
  bool is_quiet = true;
  {
    MutexLock lock(mutex_);
    while (saves && !shard_->IsQuiet() && work_came_.WaitUntil(mutex_, end)) {
    }
    is_quiet = !saves || shard_->IsQuiet();
    if (saves && is_quiet) save = shard_->SaveNow();
  }
  if (save != nullptr) checkpoints->Write(std::move(save));
  checkpoints->Finish(end);
  if (has_log) return absl::OkStatus();
  if (is_quiet) return checkpoints->LastSave();
  return absl::DataLossError(
      fmt::format("the last checkpoint is not in {}, and the older ones stay: the shard did not "
                  "complete its updates in time",
                  checkpoints->store().directory()));
}

bool ShardEngine::IsAtDisk() {
  MutexLock lock(mutex_);
  return is_recovering_ || (checkpoints_ != nullptr && checkpoints_->is_writing());
}

// Returns to a checkpoint, in a new generation.

Answers ShardEngine::NoteReturn() {
  const auto shard = static_cast<size_t>(Value(options_.shard));
  if (is_draining_ || shard >= orders_.returns.size() || !orders_.model.has_value()) return {};
  const ShardReturn& ordered = orders_.returns[shard];
  if (ordered.generation <= shard_->machine().generation()) return {};
  return_ = ordered;
  Answers answers;
  if (!shard_->is_returning()) answers = Absorb(shard_->BeginReturn());
  work_came_.NotifyAll();
  return answers;
}

bool ShardEngine::MayReturn() const {
  return !is_draining_ && return_.has_value() && checkpoints_ != nullptr && shard_->MayReturn();
}

absl::Status ShardEngine::Return(const ShardReturn& to, const ModelOrders& model) {
  std::shared_ptr<CheckpointWriter> checkpoints;
  ArrayBuffers arrays;
  TrainingState* state = nullptr;
  CheckSave check;
  {
    MutexLock lock(mutex_);
    checkpoints = checkpoints_;
    arrays = shard_->NewArrays(model);
    if (arrays.empty()) return absl::InternalError("there is not enough memory");
    state = shard_->training_state();
    check = CheckFor(*shard_, arrays);  // It reads only what is constant.
  }
  checkpoints->StopWriting();
  absl::StatusOr<ShardSave> save =
      LoadCheckpoint(checkpoints->store(), to.from, arrays, *state, check);
  if (!save.ok()) return save.status();
  checkpoints->RemoveAfter(to.from);
  Answers answers;
  {
    MutexLock lock(mutex_);
    shard_->Return(*std::move(save), std::move(arrays), to.generation);
    // Orders that came meanwhile may name another generation.
    return_.reset();
    answers = NoteReturn();
    if (!shard_->is_returning()) answers = Absorb(shard_->OnOrders(orders_));
  }
  LogWarning("went on from a checkpoint",
             {{"version", Value(to.from.version)}, {"generation", Value(to.generation)}});
  Deliver(std::move(answers));
  return absl::OkStatus();
}

void ShardEngine::NoteFailedReturn(const ShardReturn& to, const absl::Status& failure) {
  LogError("cannot go on from a checkpoint",
           {{"version", Value(to.from.version)}, {"reason", failure.message()}});
  // A damaged checkpoint is not offered any more, so the coordinator will name another one.
  if (absl::IsDataLoss(failure)) return;
  MutexLock lock(mutex_);
  recovery_failure_ = std::string(failure.message());
}

// The log.

bool ShardEngine::TakesOrders() {
  if (log_stage_ != LogStage::kNotBegun) {
    return log_stage_ == LogStage::kNone || log_stage_ == LogStage::kKept;
  }
  if (checkpoints_ == nullptr) return false;
  // Before training, the initial weights are granted anew. A run that has finished goes on to serve
  // its weights.
  const bool needs_weights = orders_.phase >= Phase::kTraining && orders_.phase != Phase::kFailed;
  if (!needs_weights || !orders_.model.has_value() || checkpoints_->saved().empty()) {
    BeginLog(last_segment_);
    shard_->SetRecorder(*log_);
    return true;
  }
  log_stage_ = LogStage::kIsDue;
  shard_->BeginReturn();  // Until it is replaced. Nobody waits yet.
  work_came_.NotifyAll();
  return false;
}

void ShardEngine::BeginLog(uint64_t last_segment) {
  log_ = std::make_unique<ShardLog>(
      ShardLog::Options{.directory = checkpoints_->store().directory(),
                        .last_segment = last_segment,
                        .on_synced = [this](uint64_t synced) { OnSynced(synced); },
                        .on_failure =
                            [this](const absl::Status& lost) {
                              LoseLog(absl::UnavailableError(lost.message()));
                            }},
      checkpoints_->store().disk());
  log_stage_ = LogStage::kKept;
}

void ShardEngine::Recover() {
  std::shared_ptr<CheckpointWriter> checkpoints;
  std::optional<ModelOrders> model;
  {
    MutexLock lock(mutex_);
    log_stage_ = LogStage::kBeingRedone;
    checkpoints = checkpoints_;
    model = orders_.model;
  }
  // Calls go to the shard that knows nothing until this one is ready.
  std::unique_ptr<Shard> shard = NewShard();
  const absl::StatusOr<RecoveredShard> recovered =
      RecoverShard(checkpoints->store(), *model, *shard, [this] {
        MutexLock lock(mutex_);
        return is_stopping_ || is_draining_;
      });
  if (recovered.ok()) return GoOnFrom(*recovered, std::move(shard));
  if (absl::IsCancelled(recovered.status())) return;
  if (shard->failure().empty()) return LoseLog(recovered.status());
  LogError(shard->failure());
  MutexLock lock(mutex_);
  recovery_failure_ = shard->failure();
}

void ShardEngine::GoOnFrom(const RecoveredShard& recovered, std::unique_ptr<Shard> shard) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    if (is_draining_) return;  // The next process redoes it.
    shard_.swap(shard);
    recovered_ = recovered;
    published_and_synced_ = shard_->machine().published();
    BeginLog(recovered.last_segment);
    log_->BeginSegment();
    shard_->SetRecorder(*log_);
    shard_->EndRedo();
    options_.on_model(shard_->machine().state().run.plan->count);
    answers = GiveOrders();
  }
  Deliver(std::move(answers));
}

uint64_t ShardEngine::Recorded() {
  MutexLock lock(mutex_);
  return log_ == nullptr ? 0 : log_->recorded();
}

bool ShardEngine::AwaitSynced(uint64_t events, absl::Duration time) {
  ShardLog* log = nullptr;
  {
    MutexLock lock(mutex_);
    log = log_.get();
  }
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(time);
  return log == nullptr || log->AwaitSynced(events, end) == ShardLog::Wait::kSynced;
}

void ShardEngine::FinishLog(std::chrono::steady_clock::time_point end) {
  ShardLog* log = nullptr;
  std::string directory;
  {
    MutexLock lock(mutex_);
    if (log_ == nullptr) return;
    log = log_.get();
    directory = checkpoints_->store().directory();
  }
  if (log->AwaitSynced(log->recorded(), end) != ShardLog::Wait::kLate) return;
  LoseLog(absl::UnavailableError(fmt::format(
      "{}: the log was not on the disk in the time that a server has to drain", directory)));
}

void ShardEngine::LoseLog(const absl::Status& failure) {
  {
    MutexLock lock(mutex_);
    is_log_lost_ = true;
  }
  options_.on_lost_log(failure);
}

Answers ShardEngine::HoldUntilSynced(Answers answers, std::shared_ptr<const ShardSave> save) {
  const Version published = shard_->machine().published();
  const bool is_news =
      held_.empty() ? published != published_and_synced_ : published != held_.back().published;
  if (log_ == nullptr || (held_.empty() && log_->synced() == log_->recorded())) {
    published_and_synced_ = published;
    Write(std::move(save));
    return answers;
  }
  if (is_news || save != nullptr || !answers.empty()) {
    const uint64_t position = log_->recorded();
    // A version that was published is news for the next answer, and nobody waits for it.
    if (save != nullptr || !answers.empty()) log_->Need(position);
    held_.push_back({position, published, std::move(answers), std::move(save)});
  }
  return {};
}

void ShardEngine::OnSynced(uint64_t synced) {
  std::vector<Answers> ready;
  {
    MutexLock lock(mutex_);
    while (!held_.empty() && held_.front().position <= synced) {
      Held& held = held_.front();
      published_and_synced_ = held.published;
      Write(std::move(held.save));
      ready.push_back(std::move(held.answers));
      held_.pop_front();
    }
  }
  for (Answers& answers : ready) Deliver(std::move(answers));
}

bool ShardEngine::DropHeld(CallId call) {
  for (Held& held : held_) {
    const auto found = std::ranges::find(held.answers, call, &Answer::call);
    if (found == held.answers.end()) continue;
    held.answers.erase(found);
    return true;
  }
  return false;
}

void ShardEngine::Write(std::shared_ptr<const ShardSave> save) {
  if (save == nullptr) return;
  if (checkpoints_ != nullptr) {
    checkpoints_->Write(std::move(save));
  } else {
    unsaved_ = std::move(save);
  }
}

}  // namespace slipstream
