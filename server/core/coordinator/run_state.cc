#include "server/core/coordinator/run_state.h"

#include <fmt/format.h>

#include "common/base/archive.h"
#include "common/settings/shards.h"

namespace slipstream {

RunState::RunState(uint64_t run, const RunSpec& spec, absl::Time start)
    : rules{.run = run,
            .lease = spec.cluster.lease,
            .is_measured = spec.evaluation.by == EvaluationSpec::By::kWorkers,
            .exits_after = spec.run.after == RunControlSpec::After::kExit,
            .addresses = spec.cluster.servers},
      phase(start),
      membership(run, spec.cluster.lease),
      servers(static_cast<uint32_t>(spec.cluster.servers.size()), spec.cluster.lease),
      aggregators(spec.cluster),
      initialization(static_cast<uint32_t>(spec.cluster.servers.size()), CutOptionsOf(spec),
                     spec.fixed_examples()),
      evaluations(rules.is_measured ? spec.evaluation.every_epochs : 0,
                  rules.is_measured ? spec.model_files.save_every_epochs : 0, spec.training.epochs),
      readers(spec.cluster.lease, spec.readers.on_lag == ReadersSpec::OnLag::kWait),
      recovery(spec, servers),
      stages(spec),
      work(spec),
      supply(spec, membership, notes),
      rollback(spec.durability.keeps_log()) {
  orders.run = run;
  orders.number = 1;
  if (spec.worker.steps_by_speed) speeds.emplace(spec.worker.quantum());
}

std::vector<CoordinatorNotes::Note> RunState::TakeNotes(absl::Time time_of_day) {
  std::vector<CoordinatorNotes::Note> taken = notes.Take();
  for (const CoordinatorNotes::Note& note : taken) events.Add(note, time_of_day);
  return taken;
}

void RunState::Forgive(absl::Duration gap, absl::Time now) {
  membership.Forgive(gap, now);
  servers.Forgive(gap, now);
  aggregators.Forgive(gap, now);
  phase.Forgive(gap);
  evaluations.Forgive(gap);
  readers.Forgive(gap);
  supply.Forgive(gap);
}

template <typename Archive, typename Self>
void RunState::Parts(Archive& archive, Self& self) {
  archive(self.membership, self.servers, self.aggregators, self.initialization, self.evaluations,
          self.recovery, self.stages, self.work, self.phase, self.orders, self.events);
}

std::string RunState::Save(absl::Time now) const {
  ArchiveWriter writer;
  writer(rules.run, phase.phase(), orders.may_exit, phase.Trained(now));
  Parts(writer, *this);
  return writer.Take();
}

absl::StatusOr<SavedRun> PeekAtRun(std::string_view bytes) {
  ArchiveReader reader(bytes);
  SavedRun saved = {.phase = Phase{}};
  bool may_exit = false;
  reader(saved.run, saved.phase, may_exit);
  if (!reader.ok() || saved.phase < Phase::kWaitingForServers || saved.phase > Phase::kFailed) {
    return absl::DataLossError("the coordinator's saved state is damaged");
  }
  saved.is_over = saved.phase == Phase::kFailed || (saved.phase == Phase::kFinished && may_exit);
  return saved;
}

absl::Status RunState::Restore(std::string_view bytes, absl::Time now) {
  const absl::StatusOr<SavedRun> saved = PeekAtRun(bytes);
  if (!saved.ok()) return saved.status();
  if (saved->run != rules.run) {
    return absl::FailedPreconditionError(fmt::format(
        "the coordinator's saved state is of run {:016x}, not {:016x}", saved->run, rules.run));
  }
  ArchiveReader reader(bytes);
  reader.Skip();  // PeekAtRun has read these three.
  reader.Skip();
  reader.Skip();
  std::optional<int64_t> trained;
  reader(trained);
  Parts(reader, *this);
  const size_t shards = rules.addresses.size();
  const uint64_t per_epoch = work.per_epoch();
  const bool has_model = per_epoch > 0;
  if (!reader.is_complete() || !events.IsSound() || servers.servers().size() != shards ||
      aggregators.size() != aggregators.groups() * shards ||
      recovery.returns().shards().size() != shards || stages.at() >= stages.all().size() ||
      has_model > initialization.model().has_value()) {
    return absl::DataLossError("the coordinator's saved state is damaged");
  }
  if (has_model) orders.model = work.Plan(*initialization.model());
  if (work.per_epoch() != per_epoch) {
    return absl::DataLossError("the coordinator's saved state is damaged");
  }
  phase.OnRestored(saved->phase, trained, now);
  orders.may_exit = orders.may_exit && !phase.IsOver();  // Servers have to hear it again.
  evaluations.OnHeard(now);
  membership.BeginLeases(now);
  servers.OnRestored(now);
  aggregators.OnRestored(now);
  return absl::OkStatus();
}

}  // namespace slipstream
