#include "server/storage/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "common/process/version.h"

namespace slipstream {
namespace {

// A longer file is no manifest: this one would be of a checkpoint of 1.5 TiB.
constexpr uint64_t kManifestBytesMax = uint64_t{64} << 20;

absl::Status At(const std::string& path, const absl::Status& failure) {
  return absl::Status(failure.code(), fmt::format("{}: {}", path, std::string(failure.message())));
}

absl::Status Damaged(const std::string& path, const std::string& reason) {
  return absl::DataLossError(fmt::format("{}: {}", path, reason));
}

/// Bytes of a file that belong into memory.
struct Destination {
  uint64_t begin;  // The place in the file.
  std::span<std::byte> bytes;
};

/// Copies what a block has of the bytes.
void CopyOverlap(const Destination& to, uint64_t offset, std::span<const std::byte> block) {
  const uint64_t begin = std::max(offset, to.begin);
  const uint64_t end = std::min(offset + block.size(), to.begin + to.bytes.size());
  if (begin >= end) return;
  std::memcpy(to.bytes.data() + (begin - to.begin), block.data() + (begin - offset), end - begin);
}

/// Returns the place of an array within its file; nothing if there is none of that size.
std::optional<uint64_t> PlaceOf(const CheckpointManifest& manifest, const LoadedArray& wanted) {
  const uint64_t weights_bytes = manifest.arrays.front().values * sizeof(float);
  uint64_t place = 0;
  for (const ManifestArray& array : manifest.arrays) {
    const bool is_found = array.name == wanted.name && array.values == wanted.values.size();
    if (array.name == kWeightsArray) {
      if (is_found) return manifest.weights_file().bytes - weights_bytes;
      continue;
    }
    if (is_found) return place;
    place += array.values * sizeof(float);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<CheckpointFolder> CheckpointFolder::Open(Disk& disk, std::string path) {
  const absl::StatusOr<std::vector<DiskEntry>> entries = disk.List(path);
  if (!entries.ok()) return entries.status();
  CheckpointFolder folder(disk, std::move(path));
  for (const DiskEntry& entry : *entries) {
    if (!entry.is_directory) folder.sizes_[entry.name] = entry.bytes;
  }
  const std::string manifest_path = folder.path_ + "/" + kManifestFile;
  const auto size = folder.sizes_.find(kManifestFile);
  if (size == folder.sizes_.end()) return Damaged(manifest_path, "is missing");
  if (size->second > kManifestBytesMax) return Damaged(manifest_path, "is too large");
  std::string text(size->second, '\0');
  const absl::Status read = disk.ReadAt(manifest_path, 0, std::as_writable_bytes(std::span(text)));
  if (!read.ok()) return read;
  absl::StatusOr<CheckpointManifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return At(manifest_path, manifest.status());
  folder.manifest_ = *std::move(manifest);
  return folder;
}

absl::StatusOr<CheckpointFolder> CheckpointFolder::OpenAt(Disk& disk, std::string path,
                                                          uint64_t run, ShardId shard,
                                                          const CheckpointName& name) {
  absl::StatusOr<CheckpointFolder> folder = Open(disk, std::move(path));
  if (!folder.ok()) return folder;
  const CheckpointFacts& facts = folder->manifest().facts;
  const CheckpointName own = {.generation = facts.saved.generation, .version = facts.saved.version};
  if (facts.run == run && facts.shard == shard && own == name) return folder;
  return Damaged(folder->path_,
                 fmt::format("is the checkpoint {} of run {}, {}", CheckpointDirectoryName(own),
                             RunDirectoryName(facts.run), ShardDirectoryName(facts.shard)));
}

absl::Status CheckpointFolder::CheckSize(const ManifestFile& file) const {
  const auto found = sizes_.find(file.name);
  if (found == sizes_.end()) return Damaged(PathOf(file), "is missing");
  if (found->second < file.bytes) {
    return Damaged(PathOf(file), fmt::format("truncated: it ends at byte {}, and had {} bytes",
                                             found->second, file.bytes));
  }
  if (found->second == file.bytes) return absl::OkStatus();
  return Damaged(PathOf(file),
                 fmt::format("damaged: bytes follow its end, at byte {}", file.bytes));
}

absl::Status CheckpointFolder::CheckSizes() const {
  for (const ManifestFile& file : manifest_.files) {
    if (absl::Status right = CheckSize(file); !right.ok()) return right;
  }
  return absl::OkStatus();
}

absl::Status CheckpointFolder::ReadBlock(const ManifestFile& file, size_t index,
                                         std::span<std::byte> block) const {
  const uint64_t begin = index * kBlockBytes;
  if (absl::Status read = disk_->ReadAt(PathOf(file), begin, block); !read.ok()) return read;
  if (HashOf(block) == file.blocks[index]) return absl::OkStatus();
  return Damaged(PathOf(file), fmt::format("damaged: the checksum of bytes {} to {} is wrong",
                                           begin, begin + block.size()));
}

absl::Status CheckpointFolder::ReadBlocks(const ManifestFile& file, const BlockReader& reader,
                                          std::vector<absl::Status>* damage) const {
  if (absl::Status right = CheckSize(file); !right.ok()) return right;
  std::vector<std::byte> buffer(std::min<uint64_t>(kBlockBytes, file.bytes));
  for (size_t index = 0; index < file.blocks.size(); ++index) {
    const uint64_t begin = index * kBlockBytes;
    const std::span<std::byte> block =
        std::span(buffer).first(std::min<uint64_t>(kBlockBytes, file.bytes - begin));
    absl::Status read = ReadBlock(file, index, block);
    if (read.ok()) {
      reader(begin, block);
    } else if (damage != nullptr) {
      damage->push_back(std::move(read));
    } else {
      return read;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointFolder::CheckFormat() const {
  const std::string why = WhyUnreadable(manifest_.format, manifest_.program);
  if (why.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{}: {}; its {} can be read", path_, why, kWeightsFile));
}

absl::StatusOr<std::string> CheckpointFolder::ReadState() const {
  if (absl::Status readable = CheckFormat(); !readable.ok()) return readable;
  std::string state;
  const absl::Status read =
      ReadBlocks(manifest_.state_file(), [&state](uint64_t, std::span<const std::byte> block) {
        state.append(reinterpret_cast<const char*>(block.data()), block.size());
      });
  if (!read.ok()) return read;
  return state;
}

absl::Status CheckpointFolder::ReadArrays(std::span<const LoadedArray> arrays) const {
  std::vector<Destination> weights;
  std::vector<Destination> others;
  for (const LoadedArray& array : arrays) {
    const std::optional<uint64_t> place = PlaceOf(manifest_, array);
    if (!place) {
      return absl::FailedPreconditionError(fmt::format("{}: has no array \"{}\" of {} values",
                                                       path_, array.name, array.values.size()));
    }
    (array.name == kWeightsArray ? weights : others)
        .push_back({.begin = *place, .bytes = std::as_writable_bytes(array.values)});
  }
  const auto read_into = [this](const ManifestFile& file, const std::vector<Destination>& all) {
    if (all.empty()) return absl::OkStatus();
    return ReadBlocks(file, [&all](uint64_t offset, std::span<const std::byte> block) {
      for (const Destination& each : all) CopyOverlap(each, offset, block);
    });
  };
  absl::Status read = read_into(manifest_.weights_file(), weights);
  return read.ok() ? read_into(manifest_.arrays_file(), others) : read;
}

std::vector<absl::Status> CheckpointFolder::Verify() const {
  const auto drop = [](uint64_t, std::span<const std::byte>) {};
  std::vector<absl::Status> damage;
  for (const ManifestFile& file : manifest_.files) {
    absl::Status read = ReadBlocks(file, drop, &damage);
    if (!read.ok()) damage.push_back(std::move(read));
  }
  return damage;
}

}  // namespace slipstream
