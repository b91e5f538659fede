// The part of SimShard that uses the disk: checkpoints and log, the end of the process, and how
// another process goes on.

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "server/control_plane/coordinator_wire.h"
#include "server/control_plane/orders_wire.h"
#include "server/core/shard/shard_return.h"
#include "server/data_plane/shard_recovery.h"
#include "server/status/shard_report.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/checkpoint_paths.h"
#include "server/storage/log_segment.h"
#include "tests/simulation/sim_shard.h"

namespace slipstream {

// Leaving the shard.

void SimShard::Leave(std::function<void()> effect) {
  if (log_ == nullptr) return effect();
  log_->Leave(std::move(effect), [] {});
}

void SimShard::Show(Event event) {
  if (log_ == nullptr) return history_.Add(std::move(event));
  const auto show = [this, event] { history_.Add(event); };
  const uint64_t number = log_->events();
  log_->Leave(show, [this, number, event] { disk_.untold.push_back({number, event}); });
}

void SimShard::Describe(v1::SyncServerRequest& request) {
  request.set_initialized(IsInitialized());
  request.set_drained(IsDrained());
  *request.mutable_progress() = ProgressOf(machine());
  request.set_generation(Value(machine().generation()));
  // Before the first orders, the process does not know which run it serves.
  request.set_knows_saved(generation_before_.has_value());
  for (const SavedVersion& each : saved()) *request.add_saved() = ToWire(each);
  if (saves_.has_failed()) request.mutable_status()->set_checkpoint_failure("the disk fails");
}

bool SimShard::IsInitialized() const {
  if (!machine().has_granted_weights() || is_redoing_) return false;
  const bool come_from_disk = has_redone_ || machine().generation() > Generation{};
  if (!saves_state_ || come_from_disk || (!keeps_log_ && saves_.has_failed())) return true;
  return saves_.HasSavedInitial(machine().state().initial_weights.initialized_grant());
}

bool SimShard::IsDrained() const {
  // As ShardEngine: what is measured next must not be lost.
  const bool needs_no_save = !saves_state_ || saves_.has_failed();
  if (!machine().is_drained() || needs_no_save) return machine().is_drained();
  return std::ranges::any_of(saved(), [this](const SavedVersion& each) {
    return each.generation == machine().generation() && each.version == machine().decided();
  });
}

bool SimShard::IsAt(ServerFault::Moment moment) const {
  const bool is_logging = log_ != nullptr && log_->is_writing();
  switch (moment) {
    case ServerFault::Moment::kAny:
      return true;
    case ServerFault::Moment::kWriting:
      return saves_.is_writing() || is_logging;
    case ServerFault::Moment::kLogging:
      return is_logging;
    case ServerFault::Moment::kSaving:
      return saves_.is_writing();
    case ServerFault::Moment::kNewSegment:
      return log_ != nullptr && log_->has_new_segment();
    case ServerFault::Moment::kRedoing:
      return is_redoing_;
  }
  return false;
}

std::vector<SavedVersion> SimShard::saved() const {
  return store_ == nullptr ? std::vector<SavedVersion>() : store_->saved();
}

bool SimShard::HasSaved(const SavedVersion& which) const {
  return std::ranges::count(saved(), which) > 0;
}

// The end of the process.

void SimShard::Kill(const ServerDeath& death) {
  trace_.Line("the server of shard {} is killed{}", Value(id_),
              death.takes_machine ? " with its machine" : "");
  process_->is_dead = true;
  // With a log, nothing is lost that an observer has seen.
  if (!keeps_log_) history_.Add(ServerKilled{id_});
  for (const auto& [number, call] : calls_) {
    network_.Finish(call.stream, absl::UnavailableError("the server is gone"));
  }
  calls_.clear();
  EndOnDisk(death);
}

void SimShard::EndOnDisk(const ServerDeath& death) {
  disk_.files.StopAtCall(death.calls_left + 1);
  if (is_redoing_) (void)RedoFromDisk();
  saves_.End();
  if (log_ != nullptr) log_->End();
  disk_.files.EndFailures();
  disk_.saved = saved();
  if (death.damages && disk_.saved.size() > 1) {
    const SavedVersion& newest = disk_.saved.back();
    const std::string checkpoint = CheckpointDirectoryName({newest.generation, newest.version});
    std::string& bytes =
        disk_.files.BytesOf(store_->directory() + "/" + checkpoint + "/" + kStateFile);
    bytes[bytes.size() / 2] ^= 1;
    trace_.Line("shard {}: {} is damaged", Value(id_), checkpoint);
  }
  store_.reset();
  if (death.takes_machine) disk_.files.Crash(death.seed);
}

// Another process goes on in the same generation.

void SimShard::OpenDisk() {
  absl::StatusOr<std::unique_ptr<CheckpointStore>> store =
      CheckpointStore::Open(disk_.files, directory_, orders_.run, id_);
  PS_CHECK(store.ok());
  store_ = *std::move(store);
  saves_.SetStore(*store_);
  if (HasToRedo()) return BeginRedo();
  if (!keeps_log_) return;
  const absl::StatusOr<std::vector<uint64_t>> segments =
      ListSegments(disk_.files, store_->directory());
  PS_CHECK(segments.ok());
  BeginLog(segments->empty() ? 0 : segments->back(), /*events_before=*/0);
}

bool SimShard::HasToRedo() const {
  return keeps_log_ && orders_.phase >= Phase::kTraining && !saved().empty();
}

void SimShard::BeginLog(uint64_t last_segment, uint64_t events_before) {
  SimLog::Options options = log_options_;
  options.directory = store_->directory();
  options.last_segment = last_segment;
  options.events_before = events_before;
  options.on_failure = [this](const absl::Status& failure) {
    trace_.Line("shard {} cannot write its log: {}", Value(id_), failure.ToString());
    on_failure_();
  };
  log_ = std::make_unique<SimLog>(options, process_, queue_, disk_);
  shard_.SetRecorder(*log_);
}

void SimShard::BeginRedo() {
  is_redoing_ = true;
  PS_CHECK(shard_.BeginReturn().answers.empty());
  queue_.After(chance_.Time(absl::Microseconds(10), redo_time_max_), [this] {
    if (!process_->is_dead) Redo();
  });
}

void SimShard::Redo() {
  const absl::StatusOr<uint64_t> events = RedoFromDisk();
  if (events.ok()) return GoOn(*events);
  history_.broken_rules.push_back(
      fmt::format("shard {}: cannot redo its log: {}", Value(id_), events.status().ToString()));
  on_failure_();
}

absl::StatusOr<uint64_t> SimShard::RedoFromDisk() {
  const absl::StatusOr<RecoveredShard> recovered =
      RecoverShard(*store_, *orders_.model, shard_, [] { return false; });
  if (!recovered.ok()) return recovered.status();
  const uint64_t first = store_->LogOf(recovered->from);
  const uint64_t events = disk_.segment_begins.at(first) + recovered->log.events;
  std::erase_if(disk_.untold,
                [events](const SimDisk::Untold& each) { return each.log_event > events; });
  BeginLog(recovered->last_segment, events);
  log_->BeginSegment();
  shard_.EndRedo();
  return events;
}

void SimShard::GoOn(uint64_t events) {
  trace_.Line("shard {} goes on from its log after {} events, version {}", Value(id_), events,
              Value(machine().decided()));
  if (events < disk_.events_synced) {
    history_.broken_rules.push_back(fmt::format("shard {}: of {} events in the log, {} are left",
                                                Value(id_), disk_.events_synced, events));
  }
  is_redoing_ = false;
  has_redone_ = true;
  disk_.events_synced = events;
  for (const SimDisk::Untold& each : std::exchange(disk_.untold, {})) history_.Add(each.event);
  machine().CheckInvariants();
  decided_ = machine().decided();
  last_saved_ = machine().state().saves.last_saved();
  const std::span<const float> values = shard_.weights()->values();
  history_.Add(ShardWentOn{id_, machine().generation(), machine().published(),
                           std::make_shared<std::vector<float>>(values.begin(), values.end())});
  StartNextJob();
  TakeOrders();
}

// A return to a checkpoint, in another generation.

const ShardReturn* SimShard::FindReturn(const ServerOrders& orders) const {
  if (!orders.model.has_value() || Value(id_) >= orders.returns.size()) return nullptr;
  const ShardReturn& order = orders.returns[Value(id_)];
  const Generation generation = std::max(machine().generation(), *generation_before_);
  const bool is_news = order.generation > generation && HasSaved(order.from);
  return is_news ? &order : nullptr;
}

void SimShard::Return(const ModelOrders& model, const ShardReturn& order) {
  trace_.Line("shard {} goes on from generation {} version {} in generation {}", Value(id_),
              Value(order.from.generation), Value(order.from.version), Value(order.generation));
  EndAllCalls();
  PS_CHECK(shard_.BeginReturn().answers.empty());
  while (!running_.empty()) FinishJob(running_.front());
  saves_.GiveUp();
  ArrayBuffers arrays = shard_.NewArrays(model);
  absl::StatusOr<ShardSave> save =
      LoadCheckpoint(*store_, order.from, arrays, *shard_.training_state());
  PS_CHECK(save.ok());
  shard_.Return(*std::move(save), std::move(arrays), order.generation);
  last_saved_ = machine().state().saves.last_saved();
  machine().CheckInvariants();
  decided_ = machine().decided();
  PS_CHECK(store_->RemoveAfter(order.from).ok());
  const std::span<const float> values = shard_.weights()->values();
  history_.Add(ShardReturned{id_, order.generation, order.from,
                             std::make_shared<std::vector<float>>(values.begin(), values.end())});
}

void SimShard::EndAllCalls() {
  const absl::Status status = absl::UnavailableError("RETRY_LATER: the shard is to return");
  // Calls that wait come first, as the end of another one would answer them.
  for (const auto& [number, call] : calls_) shard_.Cancel(CallId{number});
  while (!calls_.empty()) {
    Call& call = calls_.begin()->second;
    if (const auto push = call.pushes.Abandon()) shard_.AbandonPush(*push);
    if (call.is_pinning) {
      EndPull(call, status);
    } else {
      End(call, status);
    }
  }
}

void SimShard::NoteSave() {
  const ShardState& state = machine().state();
  if (state.saves.last_saved() == last_saved_) return;
  last_saved_ = state.saves.last_saved();
  if (!last_saved_.has_value()) return;
  const SavedVersion saved = {machine().generation(), machine().decided(), machine().stage()};
  trace_.Line("shard {} saves generation {} version {}", Value(id_), Value(saved.generation),
              Value(saved.version));
  Show(SaveBegun{id_, saved});
}

}  // namespace slipstream
