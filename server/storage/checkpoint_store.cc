#include "server/storage/checkpoint_store.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/log/log.h"

namespace slipstream {

absl::StatusOr<std::unique_ptr<CheckpointStore>> CheckpointStore::Open(Disk& disk,
                                                                       const std::string& directory,
                                                                       uint64_t run,
                                                                       ShardId shard) {
  const std::string run_directory = directory + "/" + RunDirectoryName(run);
  std::unique_ptr<CheckpointStore> store(
      new CheckpointStore(disk, run_directory + "/" + ShardDirectoryName(shard), run, shard));
  if (absl::Status made = disk.MakeDirectories(store->directory_); !made.ok()) return made;
  // An earlier process may have made them, and been killed before it synced.
  for (const std::string& parent : {directory, run_directory}) {
    if (absl::Status synced = disk.SyncDirectory(parent); !synced.ok()) return synced;
  }
  absl::StatusOr<std::unique_ptr<DiskLock>> lock = disk.Lock(store->directory_);
  if (!lock.ok()) return lock.status();
  store->lock_ = *std::move(lock);
  if (absl::Status removed = store->RemoveUnfinished(); !removed.ok()) return removed;
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
    const absl::Status sound = folder.ok() ? folder->CheckSizes() : folder.status();
    if (sound.ok()) {
      const CheckpointManifest& manifest = folder->manifest();
      kept_[*name] = {
          .stage = manifest.facts.saved.stage, .bytes = manifest.bytes(), .is_sound = true};
    } else {
      kept_[*name] = {};
      LogWarning("a checkpoint cannot be used", {{"reason", sound.message()}});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointFolder> CheckpointStore::OpenFolder(const CheckpointName& name) {
  absl::StatusOr<CheckpointFolder> folder = CheckpointFolder::Open(disk_, PathOf(name));
  if (!folder.ok()) return folder;
  const CheckpointFacts& facts = folder->manifest().facts;
  if (facts.run == run_ && facts.shard == shard_ && NameOf(facts.saved) == name) return folder;
  return absl::DataLossError(fmt::format("{}: is the checkpoint {} of run {}, {}", PathOf(name),
                                         CheckpointDirectoryName(NameOf(facts.saved)),
                                         RunDirectoryName(facts.run),
                                         ShardDirectoryName(facts.shard)));
}

std::vector<SavedVersion> CheckpointStore::saved() const {
  MutexLock lock(mutex_);
  std::vector<SavedVersion> all;
  for (const auto& [name, kept] : kept_) {
    if (!kept.is_sound) continue;
    all.push_back({.life = name.life, .version = name.version, .stage = kept.stage});
  }
  return all;
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
  if (BytesOf(facts.saved)) return absl::OkStatus();
  const absl::StatusOr<uint64_t> bytes = WriteAndName(facts, tensors, state, arrays);
  if (!bytes.ok()) {
    // Give the space back. If that fails too, the next call that writes or removes does it.
    (void)RemoveUnfinished();
    return bytes.status();
  }
  MutexLock lock(mutex_);
  kept_[NameOf(facts.saved)] = {.stage = facts.saved.stage, .bytes = *bytes, .is_sound = true};
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CheckpointStore::WriteAndName(const CheckpointFacts& facts,
                                                       const TensorLayout& tensors,
                                                       std::string_view state,
                                                       std::span<const CheckpointArray> arrays) {
  const CheckpointName name = NameOf(facts.saved);
  const std::string folder = UnfinishedPathOf(name);
  if (absl::Status removed = RemoveUnfinished(); !removed.ok()) return removed;
  if (absl::Status removed = RemoveDamaged(name); !removed.ok()) return removed;
  if (absl::Status made = disk_.MakeDirectories(folder); !made.ok()) return made;
  absl::StatusOr<uint64_t> bytes = WriteCheckpoint(disk_, folder, facts, tensors, state, arrays);
  if (!bytes.ok()) return bytes;
  if (absl::Status synced = disk_.SyncDirectory(folder); !synced.ok()) return synced;
  if (absl::Status named = disk_.Rename(folder, PathOf(name)); !named.ok()) return named;
  if (absl::Status synced = disk_.SyncDirectory(directory_); !synced.ok()) {
    // A crash may take the name away, so it must not count. Take it away, or else remember that the
    // directory is in the way.
    if (!disk_.Rename(PathOf(name), folder).ok()) {
      MutexLock lock(mutex_);
      kept_[name] = {};
    }
    return synced;
  }
  return bytes;
}

absl::StatusOr<std::string> CheckpointStore::LoadState(const SavedVersion& which) {
  std::string state;
  const absl::Status loaded = Load(which, [&state](const CheckpointFolder& folder) {
    absl::StatusOr<std::string> read = folder.ReadState();
    if (!read.ok()) return read.status();
    state = *std::move(read);
    return absl::OkStatus();
  });
  if (!loaded.ok()) return loaded;
  return state;
}

absl::Status CheckpointStore::LoadArrays(const SavedVersion& which,
                                         std::span<const LoadedArray> arrays) {
  return Load(which,
              [arrays](const CheckpointFolder& folder) { return folder.ReadArrays(arrays); });
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
  if (absl::Status removed = RemoveUnfinished(); !removed.ok()) return removed;
  return RemoveCheckpoints(old);
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

absl::Status CheckpointStore::RemoveDamaged(const CheckpointName& name) {
  {
    MutexLock lock(mutex_);
    if (!kept_.contains(name)) return absl::OkStatus();
  }
  return RemoveCheckpoints({name});
}

absl::Status CheckpointStore::RemoveCheckpoints(const std::vector<CheckpointName>& names) {
  for (const CheckpointName& name : names) {
    // Until the name is gone from the disk, all files have to stay.
    const std::string folder = UnfinishedPathOf(name);
    if (absl::Status taken = disk_.Rename(PathOf(name), folder); !taken.ok()) return taken;
    {
      MutexLock lock(mutex_);
      kept_.erase(name);
    }
    if (absl::Status synced = disk_.SyncDirectory(directory_); !synced.ok()) return synced;
    if (absl::Status removed = RemoveFolder(folder); !removed.ok()) return removed;
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::RemoveUnfinished() {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk_.List(directory_);
  if (!entries.ok()) return entries.status();
  for (const DiskEntry& entry : *entries) {
    if (!entry.is_directory || !entry.name.ends_with(kUnfinished)) continue;
    const absl::Status removed = RemoveFolder(directory_ + "/" + entry.name);
    if (!removed.ok()) return removed;
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::RemoveFolder(const std::string& path) {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk_.List(path);
  if (!entries.ok()) return entries.status();
  for (const DiskEntry& entry : *entries) {
    const absl::Status removed = disk_.Remove(path + "/" + entry.name);
    if (!removed.ok()) return removed;
  }
  return disk_.Remove(path);
}

}  // namespace slipstream
