// The part of Coordinator that makes shards go on after their servers have come back, and orders
// the checkpoints.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "server/core/coordinator.h"

namespace slipstream {

void Coordinator::TakeLife(const ServerReport& report, absl::Time now) {
  if (!saves_.has_value()) return;
  // A run that has finished may go on to serve its weights.
  if (phase_ < Phase::kTraining || phase_ == Phase::kFailed) return;
  if (keeps_log_) return AwaitLog(report, now);
  returns_.OnReport(report);
  if (returns_together()) {
    ReturnAll(now);
  } else if (returns_.IsLost(report.shard) && Returns::KnowsItsCheckpoints(report) &&
             !servers_.AnyUnheard()) {  // Else orders cannot announce it yet.
    ReturnOne(report, now);
  }
}

absl::Status Coordinator::CheckRollback(const ServerReport& report) {
  if (report.orders_seen > orders_.number) {
    if (report.run != run_) {
      return absl::FailedPreconditionError(
          fmt::format("the server of shard {} follows orders of another run", Value(report.shard)));
    }
    if (!accepts_rollback_) {
      rollback_ = absl::DataLossError(fmt::format(
          "coordinator.state is an older copy: it ends with orders {}, and the server of shard {} "
          "has those of number {}. Put the newest one in its place; or with --accept-rollback go "
          "on from this one: work that was done since is done again, and counts twice",
          orders_.number, Value(report.shard), report.orders_seen));
      return absl::UnavailableError("the coordinator ends: its state is an older copy");
    }
    // Servers heed only what has a higher number than they know. Each registration and each view
    // since had orders of its own.
    const uint64_t behind = report.orders_seen - orders_.number;
    orders_.number += behind;
    membership_.SkipNumbers(behind + 1);
    ++journal_changes_;
    AddNote(true, "goes on from an older state of the coordinator, as it was told to",
            {{"orders_behind", behind}});
  }
  // With a log, a server tells nothing that a crash of it can undo.
  const std::optional<Version> known = servers_.NewerThan(report);
  if (!keeps_log_ || !known.has_value()) return absl::OkStatus();
  if (report.accepts_rollback) {
    servers_.ForgetNewest(report.shard);
    ++journal_changes_;
    AddNote(true, "a shard goes on from an older state, as its server was told to",
            {{"shard", Value(report.shard)},
             {"version", Value(report.version)},
             {"known", Value(*known)}});
    return absl::OkStatus();
  }
  return absl::DataLossError(fmt::format(
      "the directory of shard {} is an older copy: it ends with version {}, and {} was on the disk "
      "and known. Put the newest one in its place; or with --accept-rollback go on from this one: "
      "what was pushed since is lost",
      Value(report.shard), Value(report.version), Value(*known)));
}

void Coordinator::AwaitLog(const ServerReport& report, absl::Time now) {
  if (report.initialized) return;
  // Another process may not know of the order, or may have ended while it wrote the checkpoint.
  saves_->OnInterrupted();
  if (!Returns::KnowsItsCheckpoints(report) || !report.saved.empty()) return;
  GiveUp(fmt::format("the server of shard {} was restarted, and its directory has no checkpoint of "
                     "the run (durability.directory); its weights are lost",
                     Value(report.shard)),
         now);
}

void Coordinator::ReturnOne(const ServerReport& report, absl::Time now) {
  const auto newest = std::ranges::max_element(report.saved);
  if (newest == report.saved.end()) {
    GiveUp(fmt::format("the server of shard {} was restarted before any checkpoint of it was "
                       "complete; its weights are lost",
                       Value(report.shard)),
           now);
    return;
  }
  Return(report, Life{Value(returns_.HighestLife(report)) + 1}, *newest);
  saves_->OnInterrupted();
  PublishOrders(now);
  returns_.OnAnnounced(orders_.number);
}

void Coordinator::ReturnAll(absl::Time now) {
  std::optional<ShardId> lost;
  Life highest{};
  for (const auto& server : servers_.servers()) {
    const ServerReport& report = server->report;
    highest = std::max(highest, returns_.HighestLife(report));
    if (!returns_.IsLost(report.shard)) continue;
    if (!Returns::KnowsItsCheckpoints(report)) return;
    lost = report.shard;
  }
  // After a restart of the coordinator, what is known of the others may be old.
  if (!lost.has_value() || !servers_.AllHeard()) return;
  const std::optional<SavedVersion> cut = servers_.NewestSavedByAll();
  if (!cut.has_value()) {
    GiveUp(fmt::format("the server of shard {} was restarted, and there is no checkpoint that all "
                       "shards have; its weights are lost",
                       Value(*lost)),
           now);
    return;
  }
  returns_.OnInStep();
  for (const auto& server : servers_.servers()) {
    Return(server->report, Life{Value(highest) + 1}, *cut);
  }
  saves_->OnReturned(*cut);
  const bool goes_back = GoBackTo(*cut, now);
  PublishOrders(now);
  returns_.OnAnnounced(orders_.number);
  if (goes_back) stage_orders_ = phase_orders_ = orders_.number;
}

void Coordinator::GiveUp(std::string reason, absl::Time now) {
  if (!IsOver()) Fail(std::move(reason), now);
}

void Coordinator::Return(const ServerReport& report, Life life, const SavedVersion& from) {
  const uint64_t lost_before = returns_.shards()[Value(report.shard)].versions_lost;
  returns_.Return(report, life, from);
  const uint64_t lost = returns_.shards()[Value(report.shard)].versions_lost - lost_before;
  if (report.shard == ShardId{0}) readers_.OnReturn(from.version);
  AddNote(true, "shard returned to a checkpoint",
          {{"shard", Value(report.shard)},
           {"life", Value(life)},
           {"version", Value(from.version)},
           {"versions_lost", lost}});
}

bool Coordinator::GoBackTo(const SavedVersion& cut, absl::Time now) {
  PS_CHECK(cut.stage < stages_.size());
  if (IsOver()) return false;
  // The last version of a stage is the one with which the next begins.
  const bool begins_stage = cut.stage + 1 == stage_ && cut.version == stage_begin_;
  if (cut.stage < stage_ && !begins_stage) {
    Fail(
        "a server was restarted, and the newest checkpoint that all shards have is of an earlier "
        "policy or learning rate of the run, to which workers cannot go back",
        now);
    return false;
  }
  const bool is_drained = rounds_done_ && cut.version == drain_version_;
  if (phase_ == Phase::kTraining || is_drained) return false;
  if (phase_ == Phase::kEvaluating) {
    evaluations_.OnMoreUpdates();
    training_began_ += now - std::exchange(trained_until_, absl::InfiniteFuture());
  }
  stage_is_open_ = false;
  rounds_done_ = false;
  if (!ends_early_) end_reason_.reset();
  deserted_since_.reset();
  phase_ = Phase::kTraining;
  phase_since_ = now;
  AddNote(true, "the run goes back to training", {{"stage", stage_}});
  return true;
}

bool Coordinator::AnyAway() const {
  return std::ranges::any_of(
      servers_.servers(), [this](const auto& server) { return returns_.IsAway(server->report); });
}

void Coordinator::OrderSaveIfDue(absl::Time now) {
  if (!saves_.has_value() || AnyAway()) return;
  const uint64_t number = saves_->order().number;
  const uint64_t carried_out = saves_->carried_out();
  saves_->OrderIfDue(servers_, returns_together(), now);
  if (saves_->carried_out() > carried_out) ++changes_;
  if (saves_->order().number == number) return;
  PublishOrders(now);
  saves_->OnAnnounced(orders_.number);
}

absl::Status Coordinator::RefuseSave() const {
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  if (!saves_.has_value()) {
    return absl::FailedPreconditionError(
        "the servers of this run make no checkpoints, as durability.level is memory");
  }
  if (phase_ < Phase::kTraining) {
    return absl::FailedPreconditionError(
        fmt::format("training has not begun: the run is {}", Name(phase_)));
  }
  if (end_reason_.has_value()) {
    return absl::FailedPreconditionError(
        "training is ending: each shard saves its last version by itself");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Coordinator::OnSaveCheckpoint(uint64_t number, absl::Time now) {
  if (absl::Status refused = RefuseSave(); !refused.ok()) return refused;
  const uint64_t awaited = saves_->Await(number);
  Advance(now);
  return awaited;
}

absl::StatusOr<SaveProgress> Coordinator::AskSave(uint64_t number) const {
  if (absl::Status refused = RefuseSave(); !refused.ok()) return refused;
  SaveProgress progress;
  progress.is_complete = saves_->IsCarriedOut(number);
  for (const auto& server : servers_.servers()) {
    const ServerReport& report = server->report;
    progress.shards.push_back(
        {.saved = Saves::NewestOfLife(report),
         .has_saved = progress.is_complete || saves_->HasSaved(report, number, returns_together()),
         .is_away = returns_.IsAway(report)});
  }
  return progress;
}

}  // namespace slipstream
