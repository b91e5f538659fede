#include "worker/training/work_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/log/log.h"
#include "common/run/policy_rows.h"

namespace slipstream {

WorkSource::WorkSource(const ConsistencySpec& first, uint32_t slots, GradientClient& client,
                       UnitFetcher& units, StepFigures& figures)
    : client_(client), units_(units), figures_(figures), consistency_(first), finished_(slots) {}

absl::StatusOr<bool> WorkSource::HeedFinished(uint32_t slot) {
  finished_[slot] = true;
  if (!std::ranges::all_of(finished_, [](bool is_finished) { return is_finished; })) return false;
  // The end of rounds may be that of a stage.
  if (has_no_more_units_) return true;
  if (absl::Status status = AwaitUnit(); !status.ok()) return status;
  return false;
}

absl::Status WorkSource::AwaitUnit() {
  // The pushes in flight may be the last work there is. So first finish them: the coordinator has
  // to learn that they are done, and the shards which weights will not be used.
  for (uint32_t slot = 0; slot < finished_.size(); ++slot) {
    const absl::StatusOr<GradientClient::Step> step = client_.Advance(slot);
    if (!step.ok()) return step.status();
  }
  TellFigures();
  units_.Ask(client_.newest_life());
  return TakeUnit(units_.Await());
}

absl::Status WorkSource::Prefetch() {
  if (client_.wants_unit()) units_.Ask(client_.newest_life());
  const std::optional<UnitFetcher::Result> result = units_.Take();
  return result ? TakeUnit(*result) : absl::OkStatus();
}

absl::Status WorkSource::TakeUnit(const UnitFetcher::Result& result) {
  if (!result.ok()) return result.status();
  absl::Status status;
  if (const auto* unit = std::get_if<WorkUnit>(&*result)) {
    client_.OnUnit(*unit);
  } else if (const auto* next = std::get_if<UnitFetcher::NextStage>(&*result)) {
    status = EnterStage(*next);
  } else if (const auto* returned = std::get_if<UnitFetcher::Returned>(&*result)) {
    client_.OnReturned(returned->life);
    finished_.assign(finished_.size(), false);
  } else {
    has_no_more_units_ = true;
    client_.OnNoMoreUnits();
  }
  figures_.OnProgress(client_.progress());
  return status;
}

absl::Status WorkSource::EnterStage(const UnitFetcher::NextStage& next) {
  const PolicyTraits before = consistency_.traits();
  consistency_.policy = next.policy;
  const PolicyTraits traits = consistency_.traits();
  const bool goes_on = next.since <= stage_;
  const bool is_possible =
      goes_on ? !before.in_step && !traits.in_step : !traits.in_step || finished_.size() == 1;
  if (!is_possible) {
    return absl::InternalError(
        fmt::format("the coordinator names {} as stage {}, which this worker cannot go over to",
                    RowOf(next.policy).name, next.number));
  }
  LogInfo("the run is in another stage",
          {{"policy", RowOf(next.policy).name}, {"stage", next.number}});
  stage_ = next.number;
  if (!goes_on) finished_.assign(finished_.size(), false);
  return client_.EnterStage({.number = next.number,
                             .since = next.since,
                             .in_step = traits.in_step,
                             .releases_unused = traits.waits_for_members});
}

absl::Status WorkSource::Drain() {
  absl::Status status = client_.Drain();
  TellFigures();
  figures_.OnDone(client_.progress(), absl::Now());
  return status;
}

void WorkSource::TellFigures() {
  for (GradientClient::Transfer& transfer : client_.TakeTransfers()) {
    figures_.OnTransfer(std::move(transfer));
  }
  figures_.OnProgress(client_.progress());
  figures_.OnSplitPushes(client_.split_pushes());
}

}  // namespace slipstream
