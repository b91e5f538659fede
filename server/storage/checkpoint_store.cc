#include "server/storage/checkpoint_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/log/log.h"
#include "server/storage/log_segment.h"

namespace slipstream {

absl::StatusOr<std::unique_ptr<CheckpointStore>> CheckpointStore::Open(Disk& disk,
                                                                       const std::string& directory,
                                                                       uint64_t run, ShardId shard,
                                                                       bool has_begun) {
  const std::string run_directory = directory + "/" + RunDirectoryName(run);
  std::unique_ptr<CheckpointStore> store(
      new CheckpointStore(disk, run_directory + "/" + ShardDirectoryName(shard), run, shard));
  if (has_begun && absl::IsNotFound(disk.List(store->directory_).status())) {
    return absl::NotFoundError(
        fmt::format("{} is not there, though the run has begun: is its disk mounted, and "
                    "durability.directory the one that this shard had before?",
                    store->directory_));
  }
  if (absl::Status made = disk.MakeDirectories(store->directory_); !made.ok()) return made;
  // An earlier process may have made them, and been killed before it synced.
  for (const std::string& parent : {directory, run_directory}) {
    if (absl::Status synced = disk.SyncDirectory(parent); !synced.ok()) return synced;
  }
  absl::StatusOr<std::unique_ptr<DiskLock>> lock = disk.Lock(store->directory_);
  if (!lock.ok()) return lock.status();
  store->lock_ = *std::move(lock);
  if (absl::Status removed = store->RemoveLeftovers(); !removed.ok()) {
    LogWarning("what is left of a checkpoint stays", {{"reason", removed.message()}});
  }
  if (absl::Status found = store->FindKept(); !found.ok()) return found;
  return store;
}

absl::Status CheckpointStore::FindKept() {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk_.List(directory_);
  if (!entries.ok()) return entries.status();
  MutexLock lock(mutex_);
  for (const DiskEntry& entry : *entries) {
    const std::optional<CheckpointName> name = ParseCheckpointDirectoryName(entry.name);
    if (!name) continue;
    const absl::StatusOr<CheckpointFolder> folder = OpenFolder(*name);
    const absl::Status readable = folder.ok() ? folder->CheckFormat() : folder.status();
    // Going on from an older one would remove what the other release goes on with.
    if (absl::IsFailedPrecondition(readable)) return readable;
    const absl::Status sound = folder.ok() ? folder->CheckSizes() : folder.status();
    if (sound.ok()) {
      const CheckpointManifest& manifest = folder->manifest();
      kept_[*name] = {.stage = manifest.facts.saved.stage,
                      .bytes = manifest.bytes(),
                      .log = manifest.facts.log,
                      .is_sound = true};
    } else {
      kept_[*name] = {};
      LogWarning("a checkpoint cannot be used", {{"reason", sound.message()}});
    }
  }
  return absl::OkStatus();
}

std::vector<SavedVersion> CheckpointStore::saved() const {
  MutexLock lock(mutex_);
  std::vector<SavedVersion> all;
  for (const auto& [name, kept] : kept_) {
    if (!kept.is_sound) continue;
    all.push_back({.generation = name.generation, .version = name.version, .stage = kept.stage});
  }
  return all;
}

uint64_t CheckpointStore::LogOf(const SavedVersion& which) const {
  MutexLock lock(mutex_);
  const auto found = kept_.find(NameOf(which));
  return found == kept_.end() || !found->second.is_sound ? 0 : found->second.log;
}

std::optional<uint64_t> CheckpointStore::BytesOf(const SavedVersion& which) const {
  MutexLock lock(mutex_);
  const auto found = kept_.find(NameOf(which));
  if (found == kept_.end() || !found->second.is_sound) return std::nullopt;
  return found->second.bytes;
}

absl::Status CheckpointStore::Save(const CheckpointFacts& facts, const TensorLayout& tensors,
                                   std::string_view state,
                                   std::span<const CheckpointArray> arrays) {
  PS_CHECK(facts.run == run_ && facts.shard == shard_);
  const absl::StatusOr<uint64_t> bytes = WriteAndName(facts, tensors, state, arrays);
  if (!bytes.ok()) {
    // Give the space back. If that fails too, the next Prune does it.
    (void)RemoveUnfinished(UnfinishedPathOf(NameOf(facts.saved)));
    return bytes.status();
  }
  MutexLock lock(mutex_);
  kept_[NameOf(facts.saved)] = {
      .stage = facts.saved.stage, .bytes = *bytes, .log = facts.log, .is_sound = true};
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CheckpointStore::WriteAndName(const CheckpointFacts& facts,
                                                       const TensorLayout& tensors,
                                                       std::string_view state,
                                                       std::span<const CheckpointArray> arrays) {
  const CheckpointName name = NameOf(facts.saved);
  const std::string folder = UnfinishedPathOf(name);
  absl::Status removed = IsThere(name) ? RemoveCheckpoints({name}) : RemoveUnfinished(folder);
  if (!removed.ok()) return removed;
  if (absl::Status made = disk_.MakeDirectories(folder); !made.ok()) return made;
  absl::StatusOr<uint64_t> bytes = WriteCheckpoint(disk_, folder, facts, tensors, state, arrays);
  if (!bytes.ok()) return bytes;
  if (absl::Status synced = disk_.SyncDirectory(folder); !synced.ok()) return synced;
  if (absl::Status named = GiveName(name); !named.ok()) return named;
  return bytes;
}

absl::Status CheckpointStore::GiveName(const CheckpointName& name) {
  const std::string unfinished = UnfinishedPathOf(name);
  if (absl::Status named = disk_.Rename(unfinished, PathOf(name)); !named.ok()) return named;
  if (absl::Status synced = disk_.SyncDirectory(directory_); !synced.ok()) {
    // A crash may take the name away, so it must not count. Take it away, or else remember that the
    // directory is in the way.
    if (!disk_.Rename(PathOf(name), unfinished).ok()) {
      MutexLock lock(mutex_);
      kept_[name] = {};
    }
    return synced;
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::Load(
    const SavedVersion& which, const std::function<absl::Status(const CheckpointFolder&)>& read) {
  const CheckpointName name = NameOf(which);
  const absl::StatusOr<CheckpointFolder> folder = OpenFolder(name);
  absl::Status loaded = folder.ok() ? read(*folder) : folder.status();
  if (absl::IsDataLoss(loaded)) {
    MutexLock lock(mutex_);
    const auto kept = kept_.find(name);
    if (kept != kept_.end()) kept->second.is_sound = false;
  }
  return loaded;
}

absl::Status CheckpointStore::Prune(uint32_t keep, const std::optional<SavedVersion>& safe) {
  std::vector<CheckpointName> old;
  {
    MutexLock lock(mutex_);
    uint32_t sound = 0;
    for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
      const bool is_safe = safe.has_value() && kept->first >= NameOf(*safe);
      if (sound >= keep && !is_safe) old.push_back(kept->first);
      sound += kept->second.is_sound ? 1 : 0;
    }
  }
  absl::Status pruned = RemoveLeftovers();
  pruned.Update(RemoveCheckpoints(old));
  pruned.Update(PruneLog());
  return pruned;
}

absl::Status CheckpointStore::PruneLog() {
  std::optional<uint64_t> first;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, kept] : kept_) {
      if (kept.is_sound && kept.log > 0) first = std::min(first.value_or(kept.log), kept.log);
    }
  }
  return first ? RemoveSegmentsBefore(disk_, directory_, *first) : absl::OkStatus();
}

absl::Status CheckpointStore::RemoveAfter(const SavedVersion& from) {
  std::vector<CheckpointName> newer;
  {
    MutexLock lock(mutex_);
    for (auto kept = kept_.upper_bound(NameOf(from)); kept != kept_.end(); ++kept) {
      newer.push_back(kept->first);
    }
  }
  return RemoveCheckpoints(newer);
}

bool CheckpointStore::IsThere(const CheckpointName& name) const {
  MutexLock lock(mutex_);
  return kept_.contains(name);
}

absl::Status CheckpointStore::RemoveCheckpoints(const std::vector<CheckpointName>& names) {
  absl::Status removed;
  for (const CheckpointName& name : names) {
    const std::string folder = UnfinishedPathOf(name);
    absl::Status gone = disk_.Rename(PathOf(name), folder);
    if (gone.ok()) {
      {
        MutexLock lock(mutex_);
        kept_.erase(name);
      }
      gone = RemoveUnfinished(folder);
    }
    removed.Update(gone);
  }
  return removed;
}

absl::Status CheckpointStore::RemoveLeftovers() {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk_.List(directory_);
  if (!entries.ok()) return entries.status();
  absl::Status removed;
  for (const DiskEntry& entry : *entries) {
    if (!entry.is_directory || !entry.name.ends_with(kUnfinished)) continue;
    removed.Update(RemoveUnfinished(directory_ + "/" + entry.name));
  }
  return removed;
}

absl::Status CheckpointStore::RemoveUnfinished(const std::string& path) {
  // It may have been a checkpoint. Until that name is gone from the disk, all files have to stay.
  if (absl::Status synced = disk_.SyncDirectory(directory_); !synced.ok()) return synced;
  return RemoveFolder(path);
}

absl::Status CheckpointStore::RemoveFolder(const std::string& path) {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk_.List(path);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  if (!entries.ok()) return entries.status();
  absl::Status removed;
  for (const DiskEntry& entry : *entries) {
    const std::string inner = path + "/" + entry.name;
    removed.Update(entry.is_directory ? RemoveFolder(inner) : disk_.Remove(inner));
  }
  return removed.ok() ? disk_.Remove(path) : removed;
}

}  // namespace slipstream
