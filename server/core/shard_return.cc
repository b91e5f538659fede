#include "server/core/shard_return.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "common/base/archive.h"
#include "common/base/check.h"

namespace slipstream {

ShardState Returned(ShardState saved, Life life) {
  PS_CHECK(life > saved.life && saved.round.contributions() == 0);
  saved.members.BeginLife(saved.life);
  saved.life = life;
  saved.life_begin = saved.decided;
  saved.published = saved.decided;
  // The checkpoint is of the life before. A shard that is drained saves one of this life, too.
  saved.last_saved.reset();
  saved.is_initialized = true;
  saved.phase = std::min(saved.phase, Phase::kTraining);
  saved.slowest.reset();
  saved.round = saved.round.Emptied();
  saved.round_was_held_back = false;
  saved.did_last.clear();
  saved.reader_pace = {};
  const Version newest = saved.decided;
  return Continued(std::move(saved), {.oldest_kept = newest});
}

ShardState Continued(ShardState state, const EndedProcess& end) {
  state.members.EndCalls();
  state.draft.reset();
  state.waiting.clear();
  state.reader_pulls.clear();
  state.bytes_queued = end.bytes_held;
  while (state.versions.size() > Value(state.decided) + 1 - Value(end.oldest_kept)) {
    state.versions.pop_front();
  }
  state.kept_from = std::max(state.kept_from, end.oldest_kept);
  if (state.last_saved > end.saved) state.save_is_due = true;
  state.last_saved = end.saved;
  return state;
}

std::string EncodeShardState(const ShardState& state) {
  PS_CHECK(state.round.contributions() == 0);
  ArchiveWriter writer;
  writer(state);
  return writer.Take();
}

absl::StatusOr<ShardState> DecodeShardState(std::string_view bytes) {
  ShardState state = {.round =
                          Round(PolicyTraits::Order::kArrival, PolicyTraits::Weighing::kEqual)};
  ArchiveReader reader(bytes);
  reader(state);
  if (!reader.is_complete()) {
    return absl::DataLossError("the bytes are not the state of a shard");
  }
  const bool has_versions = !state.versions.empty() &&
                            state.versions.size() <= Value(state.decided) + 1 &&
                            state.published <= state.decided;
  if (!has_versions || !state.plan.has_value()) {
    return absl::DataLossError("the state of the shard contradicts itself");
  }
  return state;
}

}  // namespace slipstream
