#include "server/data_plane/run_start.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "server/storage/checkpoint_listing.h"
#include "server/storage/checkpoint_set.h"

namespace slipstream {
namespace {

/// Returns the numbers that go with the arrays of a range. Where several checkpoints have parts of
/// it, they are those of the first.
absl::StatusOr<RunStart> NumbersOf(const CheckpointSet& set, const ParameterRange& range) {
  const absl::StatusOr<std::string> state = set.ReadStateOf(range);
  if (!state.ok()) return state.status();
  const absl::StatusOr<ShardSave> save = DecodeSave(*state);
  if (!save.ok()) return save.status();
  return RunStart{.scalars = save->values.scalars, .updates = save->values.updates};
}

/// Fails unless the set has the whole model. A server that sees some shards alone would choose
/// their newest checkpoints, and another server, which sees the others, may choose another version.
absl::Status CheckWhole(const CheckpointSet& set, const TensorLayout& layout) {
  const absl::StatusOr<TensorLayout> joined = set.JoinTensors();
  if (joined.ok() && joined->parameters() == layout.parameters()) return absl::OkStatus();
  return absl::DataLossError(fmt::format(
      "of run {}, the checkpoints of some shards are missing, and there are several of the others, "
      "so that each server might begin with another version; copy the directories of all shards "
      "into that of each server, or cut them for the new servers (psctl checkpoint reshard)",
      set.RunText()));
}

absl::StatusOr<RunStart> Read(Disk& disk, const StartSpec& start, const TensorLayout& layout,
                              const ParameterRange& range, const ArrayBuffers& arrays) {
  const auto listed = ListCheckpoints(disk, start.checkpoint);
  if (!listed.ok()) return listed.status();
  auto chosen = ChooseForExport(*listed, std::nullopt);
  if (!chosen.ok()) return chosen.status();
  const bool has_choice = listed->size() > chosen->size();
  const absl::StatusOr<CheckpointSet> set = CheckpointSet::Open(disk, *std::move(chosen));
  if (!set.ok()) return set.status();
  if (const std::string other = set->DifferenceFrom(layout); !other.empty()) {
    return absl::InvalidArgumentError("the checkpoint is of another model: " + other);
  }
  const absl::Status whole = has_choice ? CheckWhole(*set, layout) : absl::OkStatus();
  if (!whole.ok()) return whole;
  std::vector<LoadedArray> loaded;
  for (const auto& [name, buffer] : arrays) loaded.push_back({name, buffer->values()});
  if (absl::Status read = set->ReadRange(range, loaded); !read.ok()) return read;
  absl::StatusOr<RunStart> numbers =
      start.optimizer_state ? NumbersOf(*set, range) : absl::StatusOr<RunStart>(RunStart());
  if (!numbers.ok()) return numbers;
  numbers->from = fmt::format("run {}, {}", set->RunText(), set->VersionText());
  return numbers;
}

}  // namespace

ReadRunStart ReaderOf(Disk& disk, const StartSpec& start) {
  return [&disk, start](const TensorLayout& layout, const ParameterRange& range,
                        const ArrayBuffers& arrays) -> absl::StatusOr<RunStart> {
    absl::StatusOr<RunStart> read = Read(disk, start, layout, range, arrays);
    if (read.ok()) {
      LogInfo("starting from a checkpoint",
              {{"from", read->from}, {"optimizer_state", start.optimizer_state ? "yes" : "no"}});
      return read;
    }
    const bool has_other_arrays =
        start.optimizer_state && absl::IsFailedPrecondition(read.status());
    return absl::Status(
        read.status().code(),
        fmt::format("training.start_from: {}{}", std::string(read.status().message()),
                    has_other_arrays ? "; training.start_from.optimizer_state: false begins with "
                                       "the weights alone"
                                     : ""));
  };
}

}  // namespace slipstream
