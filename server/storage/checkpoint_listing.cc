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

// The directory has runs, these have shards, and these have checkpoints.
constexpr int kDepthMax = 2;

/// Reads the manifest of a directory; nothing if its path is not that of a checkpoint.
std::optional<ListedCheckpoint> ListOne(Disk& disk, const fs::path& path) {
  std::error_code error;
  const fs::path full = fs::canonical(path, error);  // Its parents may not be in `path`.
  const fs::path parent = full.parent_path();
  const auto name = ParseCheckpointDirectoryName(full.filename().string());
  const auto shard = ParseShardDirectoryName(parent.filename().string());
  const auto run = ParseRunDirectoryName(parent.parent_path().filename().string());
  if (!name || !shard || !run) return std::nullopt;
  ListedCheckpoint listed = {.path = path.string(), .run = *run, .shard = *shard, .name = *name};
  absl::StatusOr<CheckpointFolder> folder = CheckpointFolder::Open(disk, listed.path);
  listed.state = folder.ok() ? folder->CheckSizes() : folder.status();
  if (listed.state.ok()) listed.manifest = folder->manifest();
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
  std::vector<ListedCheckpoint> listed;
  const auto add = [&](const fs::path& path) {
    std::optional<ListedCheckpoint> one = ListOne(disk, path);
    const bool is_one = one.has_value();
    if (is_one) listed.push_back(*std::move(one));
    return is_one;
  };
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  if (error) {
    return absl::NotFoundError(fmt::format("cannot read {}: {}", directory, error.message()));
  }
  if (!add(directory)) {
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      const bool is_checkpoint = entry->is_directory() && add(entry->path());
      if (is_checkpoint || entry.depth() >= kDepthMax) entry.disable_recursion_pending();
    }
  }
  if (listed.empty()) return absl::NotFoundError(directory + " has no checkpoints");
  std::ranges::sort(listed, [](const ListedCheckpoint& one, const ListedCheckpoint& other) {
    return std::tie(one.run, one.shard, one.name) < std::tie(other.run, other.shard, other.name);
  });
  NoteWhichAreOnAllShards(listed);
  return listed;
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
