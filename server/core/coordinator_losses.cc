// The part of Coordinator that decides what follows from the loss of workers, and that finds out
// which members the run waits for.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/duration_text.h"
#include "server/core/coordinator.h"

namespace slipstream {

void Coordinator::OnGone(WorkerId worker, Incarnation gone) {
  initialization_.Forget(worker);
  evaluations_.Forget(worker);
  if (speeds_.has_value()) speeds_->Forget(worker);
  if (ledger_.has_value()) {
    // Mini-batches whose gradients the shards have reported are not done again, even if the worker
    // had not reported them. Gradients that shards took since their last report are computed again,
    // and then count twice.
    ledger_->ReportUpTo(worker, servers_.PushedEnd(worker, gone));
    ledger_->Release(worker);
  }
  contacts_.erase(worker);
  const bool is_awaited = std::ranges::count(membership_.EmptyPlaces(), worker) > 0;
  if (is_awaited) {
    AddNote(
        true, "waiting for another worker in the place of one that is gone",
        {{"worker", Value(worker)}, {"at_most_seconds", absl::ToDoubleSeconds(start_timeout_)}});
  }
  const bool is_needed = phase_ == Phase::kInitializing ||
                         (phase_ == Phase::kTraining && !(ledger_ && ledger_->AllDone()));
  if (all_reduces_ && is_needed && !lost_.has_value()) lost_ = worker;
  ++changes_;
  ++journal_changes_;
}

bool Coordinator::KeepsPlaces() const {
  const bool may_train = phase_ == Phase::kInitializing || phase_ == Phase::kTraining;
  return waits_for_lost_ && may_train && !WorkEnds() &&
         present().consistency.traits().waits_for_members;
}

std::optional<absl::Time> Coordinator::PlacesAwaitedSince() const {
  std::vector<absl::Time> empty_since;
  for (const WorkerId id : membership_.EmptyPlaces()) {
    empty_since.push_back(membership_.workers().at(id).place_empty_since);
  }
  std::ranges::sort(empty_since);
  const ConsistencySpec& policy = present().consistency;
  const auto members = static_cast<uint32_t>(membership_.view().members.size());
  // Rounds of backup close without some members.
  const uint32_t spare =
      policy.traits().one_per_member ? members - std::min(members, policy.round_size(members)) : 0;
  return spare < empty_since.size() ? std::optional(empty_since[spare]) : std::nullopt;
}

std::optional<std::string> Coordinator::LacksWorkers(absl::Time now) {
  if (ends_early_) return std::nullopt;
  const std::optional<absl::Time> empty = PlacesAwaitedSince();
  if (empty.has_value() && now - *empty > start_timeout_) {
    const WorkerId lost = membership_.EmptyPlaces().front();
    const Membership::Worker& worker = membership_.workers().at(lost);
    return fmt::format(
        "worker {} on {} is gone ({}), and no other took its place within {} "
        "(cluster.on_worker_loss wait, cluster.start_timeout)",
        Value(lost), worker.host, worker.failure.empty() ? "it left" : worker.failure,
        DurationText(start_timeout_));
  }
  // Wait even if all workers have left by themselves: machines are taken away, and come back.
  return AwaitReturn(workers_min_, "to go on", now);
}

std::optional<std::string> Coordinator::AwaitReturn(uint32_t least, const char* purpose,
                                                    absl::Time now) {
  const uint32_t live = membership_.live();
  if (live >= least) {
    deserted_since_.reset();
    return std::nullopt;
  }
  if (!deserted_since_.has_value()) {
    deserted_since_ = now;
    AddNote(true,
            live == 0
                ? fmt::format("all workers are gone; waiting for one to come back {}", purpose)
                : "fewer workers than cluster.min_workers are left; waiting for others",
            {{"live", live}, {"at_most_seconds", absl::ToDoubleSeconds(start_timeout_)}});
  }
  if (now - *deserted_since_ <= start_timeout_) return std::nullopt;
  const std::string timeout = DurationText(start_timeout_);
  if (live == 0) {
    return fmt::format("all workers are gone, and none came back within {} {}{}", timeout, purpose,
                       LastWords());
  }
  return fmt::format(
      "{} worker{} left of at least {} (cluster.min_workers), and not enough came within {}{}",
      live, live == 1 ? " is" : "s are", least, timeout, LastWords());
}

bool Coordinator::StopTraining(std::string why, absl::Time now) {
  // Where the run waits for the worker in whose place nobody came, it saves nothing more: to end
  // its rounds, it would have to make versions without that worker.
  if (!saves_.has_value() || PlacesAwaitedSince().has_value()) return Fail(std::move(why), now);
  stopped_for_ = std::move(why);
  deserted_since_.reset();
  EndWork(EndReason::kTooFewWorkers);
  return true;
}

bool Coordinator::FailOnceSaved(bool are_drained, absl::Time now) {
  const auto has_saved = [](const auto& server) {
    const ServerReport& report = server->report;
    return std::ranges::any_of(report.saved, [&report](const SavedVersion& saved) {
      return saved.life == report.life && saved.version == report.version;
    });
  };
  const bool have_all = are_drained && std::ranges::all_of(servers_.servers(), has_saved);
  if (!have_all && now - phase_since_ <= start_timeout_) return false;
  const char* const outlook =
      have_all ? "; the last weights are saved: begin the next run with them "
                 "(training.start_from, or psctl checkpoint export and model.init)"
               : "; the last weights could not be saved (durability.directory)";
  return Fail(stopped_for_ + outlook, now);
}

std::string Coordinator::LostWorker() const {
  const Membership::Worker& worker = membership_.workers().at(*lost_);
  return fmt::format(
      "worker {} on {} is gone ({}), and under allreduce every step needs all {} workers; start "
      "the run again, with fewer workers or from saved weights",
      Value(*lost_), worker.host, worker.failure.empty() ? "it left or came anew" : worker.failure,
      workers_to_start_);
}

std::vector<WorkerId> Coordinator::FindMissingWorkers() const {
  std::vector<WorkerId> missing;
  for (uint32_t id = 0; id < workers_to_start_; ++id) {
    if (!membership_.IsLive(WorkerId{id})) missing.push_back(WorkerId{id});
  }
  return missing;
}

std::optional<Coordinator::MissingMembers> Coordinator::Missing(absl::Time now) const {
  if (IsOver()) return std::nullopt;
  MissingMembers missing = {.fails_in = start_timeout_};
  for (size_t shard = 0; shard < servers_.servers().size(); ++shard) {
    const std::optional<Servers::Server>& server = servers_.servers()[shard];
    const absl::Duration silence = now - (server.has_value() ? server->last_heard : start_);
    if (server.has_value() && silence <= kServerSilenceMax) continue;
    missing.shards.push_back(ShardId{static_cast<uint32_t>(shard)});
    missing.fails_in = std::min(missing.fails_in, start_timeout_ - silence);
  }
  if (!missing.shards.empty()) return missing;

  if (phase_ == Phase::kWaitingForServers) {
    missing.aggregators = aggregators_.Missing();
    missing.fails_in -= now - start_;
    return missing;
  }
  if (phase_ == Phase::kWaitingForWorkers) {
    missing.workers = FindMissingWorkers();
    missing.fails_in -= now - start_;
    return missing;
  }
  if (phase_ == Phase::kInitializing) {
    if (HasInitialWeights()) {
      missing.aggregators = aggregators_.Behind(grant_orders_, lease_, now);
    } else if (initialization_.grant().has_value()) {
      missing.workers = {initialization_.grant()->holder.worker};
    }
    missing.fails_in -= now - phase_since_;
    return missing;
  }
  return MissingWhileTraining(now);
}

std::optional<Coordinator::MissingMembers> Coordinator::MissingWhileTraining(absl::Time now) const {
  MissingMembers missing;
  absl::Time since;
  const uint32_t least = phase_ == Phase::kTraining ? workers_min_ : 1;
  if (const std::optional<absl::Time> empty = PlacesAwaitedSince()) {
    missing.workers = membership_.EmptyPlaces();
    since = *empty;
  } else if (deserted_since_.has_value() && membership_.live() < least) {
    missing.more_workers = least - membership_.live();
    since = *deserted_since_;
  } else {
    return std::nullopt;
  }
  missing.gone_for = now - since;
  missing.fails_in = start_timeout_ - missing.gone_for;
  return missing;
}

}  // namespace slipstream
