#include "server/storage/checkpoint_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "server/storage/checkpoint_folder.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

using Listing = std::vector<ListedCheckpoint>;

/// Replaces each directory by those in it whose names `parse` can read, and notes what they say in
/// `field`.
template <typename Field, typename Parse>
absl::Status Descend(Disk& disk, Listing& listed, Field ListedCheckpoint::*field, Parse parse) {
  Listing below;
  for (const ListedCheckpoint& above : listed) {
    const absl::StatusOr<std::vector<DiskEntry>> entries = disk.List(above.path);
    if (!entries.ok()) return entries.status();
    for (const DiskEntry& entry : *entries) {
      const std::optional<Field> parsed = parse(entry.name);
      if (!entry.is_directory || !parsed) continue;
      below.push_back(above);
      below.back().path = (fs::path(above.path) / entry.name).string();
      below.back().*field = *parsed;
    }
  }
  listed = std::move(below);
  return absl::OkStatus();
}

/// Returns the directories of checkpoints. Their manifests have not been read.
absl::StatusOr<Listing> FindDirectories(Disk& disk, const std::string& directory) {
  std::error_code error;
  fs::path place = fs::canonical(directory, error);  // Its parents may not be in `directory`.
  const auto name = ParseCheckpointDirectoryName(place.filename().string());
  if (name) place = place.parent_path();
  const auto shard = ParseShardDirectoryName(place.filename().string());
  if (shard) place = place.parent_path();
  const auto run = ParseRunDirectoryName(place.filename().string());
  Listing listed = {{.path = directory,
                     .run = run.value_or(0),
                     .shard = shard.value_or(ShardId{}),
                     .name = name.value_or(CheckpointName{})}};
  absl::Status found;
  if (!run) found = Descend(disk, listed, &ListedCheckpoint::run, ParseRunDirectoryName);
  if (found.ok() && !(run && shard)) {
    found = Descend(disk, listed, &ListedCheckpoint::shard, ParseShardDirectoryName);
  }
  if (found.ok() && !(run && shard && name)) {
    found = Descend(disk, listed, &ListedCheckpoint::name, ParseCheckpointDirectoryName);
  }
  if (!found.ok()) return found;
  return listed;
}

/// Returns the shards of each run.
std::map<uint64_t, std::set<ShardId>> ShardsOf(const std::vector<ListedCheckpoint>& listed) {
  std::map<uint64_t, std::set<ShardId>> shards;
  for (const ListedCheckpoint& each : listed) shards[each.run].insert(each.shard);
  return shards;
}

void NoteWhichAreOnAllShards(std::vector<ListedCheckpoint>& listed) {
  const std::map<uint64_t, std::set<ShardId>> shards = ShardsOf(listed);
  std::map<std::pair<uint64_t, CheckpointName>, size_t> counts;
  for (const ListedCheckpoint& each : listed) counts[{each.run, each.name}] += each.state.ok();
  for (ListedCheckpoint& each : listed) {
    each.is_on_all_shards = counts.at({each.run, each.name}) == shards.at(each.run).size();
  }
}

/// Returns whether a shard has no newer checkpoint than the newest that all shards have. `newest`
/// has that of each shard.
bool AnyIsOnAllShards(const std::vector<ListedCheckpoint>& newest) {
  return std::ranges::any_of(newest, &ListedCheckpoint::is_on_all_shards);
}

}  // namespace

absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(Disk& disk,
                                                              const std::string& directory) {
  absl::StatusOr<Listing> found = FindDirectories(disk, directory);
  if (!found.ok()) return found;
  if (found->empty()) return absl::NotFoundError(directory + " has no checkpoints");
  for (ListedCheckpoint& each : *found) {
    const absl::StatusOr<CheckpointFolder> folder =
        CheckpointFolder::OpenAt(disk, each.path, each.run, each.shard, each.name);
    each.state = folder.ok() ? folder->CheckSizes() : folder.status();
    if (each.state.ok()) each.manifest = folder->manifest();
  }
  std::ranges::sort(*found, [](const ListedCheckpoint& one, const ListedCheckpoint& other) {
    return std::tie(one.run, one.shard, one.name) < std::tie(other.run, other.shard, other.name);
  });
  NoteWhichAreOnAllShards(*found);
  return found;
}

absl::StatusOr<std::vector<ListedCheckpoint>> ChooseForExport(
    const std::vector<ListedCheckpoint>& listed, std::optional<uint64_t> version) {
  const std::map<uint64_t, std::set<ShardId>> shards = ShardsOf(listed);
  if (shards.size() > 1) {
    return absl::InvalidArgumentError(fmt::format(
        "there are checkpoints of {} runs, such as {} and {}; name the directory of one",
        shards.size(), RunDirectoryName(shards.begin()->first),
        RunDirectoryName(shards.rbegin()->first)));
  }
  std::vector<ListedCheckpoint> newest;
  std::vector<ListedCheckpoint> newest_on_all;
  for (const ShardId shard : shards.begin()->second) {
    const ListedCheckpoint* last = nullptr;
    const ListedCheckpoint* last_on_all = nullptr;
    for (const ListedCheckpoint& each : listed) {  // The oldest first.
      const bool is_wanted = !version || Value(each.name.version) == *version;
      if (each.shard != shard || !each.state.ok() || !is_wanted) continue;
      last = &each;
      if (each.is_on_all_shards) last_on_all = &each;
    }
    if (last == nullptr) {
      return absl::NotFoundError(
          fmt::format("{} has no checkpoint{} that can be used", ShardDirectoryName(shard),
                      version ? fmt::format(" of version {}", *version) : std::string()));
    }
    newest.push_back(*last);
    if (last_on_all != nullptr) newest_on_all.push_back(*last_on_all);
  }
  return AnyIsOnAllShards(newest) ? newest_on_all : newest;
}

}  // namespace slipstream
