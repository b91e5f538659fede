#include "deploy/psctl/checkpoint/reshard.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "common/layout/shard_map.h"
#include "common/layout/tensor_parts.h"
#include "common/process/output_text.h"
#include "deploy/psctl/complaint.h"
#include "server/storage/checkpoint_set.h"
#include "server/storage/checkpoint_store.h"

namespace slipstream {
namespace {

/// Returns the name that all new checkpoints get: they are as new as the newest of the old ones.
SavedVersion NewestOf(const CheckpointSet& set) {
  SavedVersion newest;
  for (const ListedCheckpoint& each : set.checkpoints()) {
    newest = std::max(newest, each.manifest->facts.saved);
  }
  return newest;
}

/// Writes the checkpoint of one new shard, and prints what it is.
absl::Status WriteShard(Disk& disk, const CheckpointSet& set, const TensorLayout& layout,
                        const ShardMap& map, ShardId shard, const std::string& directory) {
  const ParameterRange range = map.range(shard);
  const std::vector<std::string> names = set.ArrayNames();
  std::vector<std::vector<float>> values(names.size(), std::vector<float>(range.size()));
  std::vector<LoadedArray> loaded;
  std::vector<CheckpointArray> arrays;
  for (size_t i = 0; i < names.size(); ++i) {
    loaded.push_back({names[i], values[i]});
    arrays.push_back({names[i], values[i]});
  }
  if (absl::Status read = set.ReadRange(range, loaded); !read.ok()) return read;
  const absl::StatusOr<std::string> state = set.ReadStateOf(range);
  if (!state.ok()) return state.status();
  const CheckpointFacts facts = {
      .run = set.checkpoints().front().run, .shard = shard, .range = range, .saved = NewestOf(set)};
  const absl::StatusOr<std::unique_ptr<CheckpointStore>> store =
      CheckpointStore::Open(disk, directory, facts.run, shard);
  if (!store.ok()) return store.status();
  absl::Status saved = (*store)->Save(facts, PartOf(layout, range), *state, arrays);
  if (!saved.ok()) return saved;
  WriteToStdout(fmt::format("{}/{}: values {} to {}, {} array{}\n", (*store)->directory(),
                            CheckpointDirectoryName({facts.saved.generation, facts.saved.version}),
                            range.begin, range.end, arrays.size(), arrays.size() == 1 ? "" : "s"));
  return absl::OkStatus();
}

absl::Status ReshardInto(Disk& disk, const CheckpointArguments& arguments,
                         const std::vector<ListedCheckpoint>& listed) {
  auto chosen = ChooseForExport(listed, std::nullopt);
  if (!chosen.ok()) return chosen.status();
  const absl::StatusOr<CheckpointSet> set = CheckpointSet::Open(disk, *std::move(chosen));
  if (!set.ok()) return set.status();
  const absl::StatusOr<TensorLayout> layout = set->JoinTensors();
  if (!layout.ok()) return layout.status();
  const absl::StatusOr<ShardMap> map = ShardMap::Cut(
      *layout, arguments.servers, {.keeps_tensors_whole = arguments.keeps_tensors_whole});
  if (!map.ok()) return map.status();
  const std::string place = arguments.output + "/" + set->RunText();
  std::error_code error;
  if (std::filesystem::exists(place, error)) {
    return absl::DataLossError(place + " exists; name another directory");
  }
  for (uint32_t shard = 0; shard < arguments.servers; ++shard) {
    absl::Status written = WriteShard(disk, *set, *layout, *map, ShardId{shard}, arguments.output);
    if (!written.ok()) return written;
  }
  WriteToStdout(fmt::format("made of run {}, {}\n", set->RunText(), set->VersionText()));
  return absl::OkStatus();
}

}  // namespace

ExitCode Reshard(Disk& disk, const CheckpointArguments& arguments,
                 const std::vector<ListedCheckpoint>& listed) {
  const absl::Status done = ReshardInto(disk, arguments, listed);
  if (done.ok()) return ExitCode::kOk;
  return Complain(done);
}

}  // namespace slipstream
