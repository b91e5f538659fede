#include "server/core/shard/shard_return.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "common/base/archive.h"
#include "common/base/check.h"

namespace slipstream {

ShardState Returned(ShardState saved, Generation generation) {
  PS_CHECK(saved.open.round.contributions() == 0);
  saved.members.BeginGeneration(saved.versions.generation());
  saved.versions.BeginGeneration(generation);
  saved.saves.BeginGeneration();
  saved.initial_weights.Return();
  saved.run.phase = std::min(saved.run.phase, Phase::kTraining);
  saved.pace.RestAll(WorkerClock{});
  saved.open.Begin(saved.open.round.Emptied());
  saved.reader_pace = {};
  const Version newest = saved.versions.decided();
  return Continued(std::move(saved), {.oldest_kept = newest});
}

ShardState Continued(ShardState state, const EndedProcess& end) {
  state.members.EndCalls();
  state.intake.EndProcess(end.bytes_held);
  state.waiting.EndProcess();
  state.reader_pulls.EndProcess();
  state.versions.EndProcess(end.oldest_kept);
  state.saves.EndProcess(end.saved);
  return state;
}

std::string EncodeShardState(const ShardState& state) {
  PS_CHECK(state.open.round.contributions() == 0);
  ArchiveWriter writer;
  writer(state);
  return writer.Take();
}

absl::StatusOr<ShardState> DecodeShardState(std::string_view bytes) {
  const Round round(PolicyTraits::Order::kArrival, PolicyTraits::Weighing::kEqual);
  ShardState state = {.open = {.round = round}};
  ArchiveReader reader(bytes);
  reader(state);
  if (!reader.is_complete()) {
    return absl::DataLossError("the bytes are not the state of a shard");
  }
  if (!state.versions.Fault().empty() || !state.run.plan.has_value()) {
    return absl::DataLossError("the state of the shard contradicts itself");
  }
  return state;
}

}  // namespace slipstream
