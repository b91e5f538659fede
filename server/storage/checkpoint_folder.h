#ifndef SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_FOLDER_H_
#define SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/checkpoint_paths.h"
#include "server/storage/disk.h"

namespace slipstream {

/// An array to read: `values` is filled.
struct LoadedArray {
  std::string name;
  std::span<float> values;
};

/// The directory of a checkpoint whose manifest has been read and is sound. Whatever is read from
/// the other files is compared with the manifest's checksums.
///
/// Errors begin with the path of the file. DATA_LOSS names the place of the damage.
///
/// Not thread-safe: one owner.
class CheckpointFolder {
 public:
  /// Reads the manifest. `disk` must outlive this object. FAILED_PRECONDITION if the manifest has a
  /// format that this program does not know.
  static absl::StatusOr<CheckpointFolder> Open(Disk& disk, std::string path);

  /// Does the same for a path that says what the checkpoint is. DATA_LOSS if it is another one.
  static absl::StatusOr<CheckpointFolder> OpenAt(Disk& disk, std::string path, uint64_t run,
                                                 ShardId shard, const CheckpointName& name);

  const CheckpointManifest& manifest() const { return manifest_; }

  /// Returns the path of the file that ReadState reads.
  std::string StatePath() const { return PathOf(manifest_.state_file()); }

  /// Returns the first difference between the sizes of the files and those in the manifest. Reads
  /// nothing.
  absl::Status CheckSizes() const;

  /// Returns FAILED_PRECONDITION if another release wrote the state, in a format that this program
  /// does not read.
  absl::Status CheckFormat() const;

  /// Returns the encoded state. Fails as CheckFormat.
  absl::StatusOr<std::string> ReadState() const;

  /// Fills the arrays; those of the checkpoint that are not named are left out. FAILED_PRECONDITION
  /// if the checkpoint has no array of the name and size. After a failure the arrays hold anything.
  absl::Status ReadArrays(std::span<const LoadedArray> arrays) const;

  /// Reads everything. Returns all damage that it finds; empty if the checkpoint is sound.
  std::vector<absl::Status> Verify() const;

 private:
  using BlockReader = std::function<void(uint64_t offset, std::span<const std::byte> block)>;

  CheckpointFolder(Disk& disk, std::string path) : disk_(&disk), path_(std::move(path)) {}

  std::string PathOf(const ManifestFile& file) const { return path_ + "/" + file.name; }
  absl::Status CheckSize(const ManifestFile& file) const;

  /// Reads a block, whose size is that of `block`, and compares its checksum.
  absl::Status ReadBlock(const ManifestFile& file, size_t index, std::span<std::byte> block) const;

  /// Hands over the blocks of a file in their order, up to the first that is damaged. With
  /// `damage`, it adds that to it, and goes on with the blocks behind.
  absl::Status ReadBlocks(const ManifestFile& file, const BlockReader& reader,
                          std::vector<absl::Status>* damage = nullptr) const;

  Disk* disk_;
  std::string path_;
  std::map<std::string, uint64_t> sizes_;  // The sizes of the files that are there.
  CheckpointManifest manifest_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_FOLDER_H_
