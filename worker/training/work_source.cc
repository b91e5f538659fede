#include "worker/training/work_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/log/log.h"

namespace slipstream {

std::vector<PolicyTraits> TraitsOfStages(const RunSpec& run) {
  std::vector<PolicyTraits> traits;
  for (const PolicyStage& stage : run.stages()) traits.push_back(stage.consistency.traits());
  return traits;
}

WorkSource::WorkSource(std::vector<PolicyTraits> stages, uint32_t slots, ParameterClient& client,
                       UnitFetcher& units, StepFigures& figures)
    : stages_(std::move(stages)),
      client_(client),
      units_(units),
      figures_(figures),
      finished_(slots) {
  PS_CHECK(!stages_.empty());
}

absl::StatusOr<bool> WorkSource::HeedFinished(uint32_t slot) {
  finished_[slot] = true;
  if (!std::ranges::all_of(finished_, [](bool is_finished) { return is_finished; })) return false;
  if (has_no_more_units_ || stage_ + 1 == stages_.size()) return true;
  if (absl::Status status = AwaitUnit(); !status.ok()) return status;
  return false;
}

absl::Status WorkSource::AwaitUnit() {
  // The pushes in flight may be the last work there is. So first finish them: the coordinator has
  // to learn that they are done, and the shards which weights will not be used.
  for (uint32_t slot = 0; slot < finished_.size(); ++slot) {
    const absl::StatusOr<ParameterClient::Step> step = client_.Advance(slot);
    if (!step.ok()) return step.status();
  }
  TellFigures();
  units_.Ask();
  return TakeUnit(units_.Await());
}

absl::Status WorkSource::Prefetch() {
  if (client_.wants_unit()) units_.Ask();
  const std::optional<UnitFetcher::Result> result = units_.Take();
  return result ? TakeUnit(*result) : absl::OkStatus();
}

absl::Status WorkSource::TakeUnit(const UnitFetcher::Result& result) {
  if (!result.ok()) return result.status();
  absl::Status status;
  if (const auto* unit = std::get_if<WorkUnit>(&*result)) {
    client_.OnUnit(*unit);
  } else if (const auto* next = std::get_if<UnitFetcher::NextStage>(&*result)) {
    status = EnterStage(next->number);
  } else {
    has_no_more_units_ = true;
    client_.OnNoMoreUnits();
  }
  figures_.OnProgress(client_.progress());
  return status;
}

absl::Status WorkSource::EnterStage(uint32_t number) {
  if (number >= stages_.size()) {
    return absl::InternalError(
        fmt::format("the coordinator names policy {} of {}", number + 1, stages_.size()));
  }
  const PolicyTraits& traits = stages_[number];
  LogInfo("another policy takes over", {{"place", number + 1}});
  stage_ = number;
  finished_.assign(finished_.size(), false);
  return client_.EnterStage(
      {.number = number, .in_step = traits.in_step, .releases_unused = traits.waits_for_members});
}

absl::Status WorkSource::Drain() {
  absl::Status status = client_.Drain();
  TellFigures();
  figures_.OnDone(client_.progress(), absl::Now());
  return status;
}

void WorkSource::TellFigures() {
  for (ParameterClient::Transfer& transfer : client_.TakeTransfers()) {
    figures_.OnTransfer(std::move(transfer));
  }
  figures_.OnProgress(client_.progress());
  figures_.OnSplitPushes(client_.split_pushes());
}

}  // namespace slipstream
