#ifndef SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_MANIFEST_H_
#define SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "server/core/saved_version.h"
#include "server/storage/block_hash.h"

namespace slipstream {

// The files of a checkpoint.
inline constexpr char kWeightsFile[] = "weights.safetensors";
inline constexpr char kArraysFile[] = "arrays.bin";
inline constexpr char kStateFile[] = "state.bin";
inline constexpr char kManifestFile[] = "MANIFEST";

/// The name of the array that lies in kWeightsFile. All others lie in kArraysFile, one after
/// another.
inline constexpr char kWeightsArray[] = "weights";

/// Returns the name of an array with the weights of an older version, from which gradients that
/// were on their way had been computed.
std::string NameOfBase(Version version);
bool IsNameOfBase(std::string_view name);

/// The bytes of a file that one checksum covers. The last block of a file may be shorter.
inline constexpr size_t kBlockBytes = size_t{1} << 20;

/// Says which shard at which version a checkpoint holds. The range is the shard's, in the whole
/// model.
struct CheckpointFacts {
  uint64_t run = 0;
  ShardId shard{};
  ParameterRange range;
  SavedVersion saved;

  /// The number of the log's segment that begins with this version; 0 without a log.
  uint64_t log = 0;

  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

/// A file of a checkpoint, and the checksums of its blocks.
struct ManifestFile {
  std::string name;
  uint64_t bytes = 0;
  std::vector<BlockHash> blocks;

  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

/// An array of a checkpoint. Its name has no blanks and no line breaks.
struct ManifestArray {
  std::string name;
  uint64_t values = 0;

  friend bool operator==(const ManifestArray&, const ManifestArray&) = default;
};

/// The file MANIFEST of a checkpoint: text, one fact per line, with a checksum of all of it in its
/// last line. README.md in this folder shows one.
struct CheckpointManifest {
  /// kDurableFormat and kVersion of the program that wrote the checkpoint.
  uint64_t format = 0;
  std::string program;
  absl::Time saved_at;  // In whole seconds.
  CheckpointFacts facts;

  /// The first is kWeightsArray.
  std::vector<ManifestArray> arrays;

  /// kWeightsFile, kArraysFile and kStateFile.
  std::vector<ManifestFile> files;

  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;

  const ManifestFile& weights_file() const { return files.at(0); }
  const ManifestFile& arrays_file() const { return files.at(1); }
  const ManifestFile& state_file() const { return files.at(2); }

  /// Returns the bytes of all files but the manifest itself.
  uint64_t bytes() const;
};

/// Returns the lines of a manifest with the last one, the checksum of them. Every format ends so.
std::string WithChecksum(std::string lines);

/// Returns the manifest's text.
std::string EncodeManifest(const CheckpointManifest& manifest);

/// Reads a manifest's text. DATA_LOSS, with the place, if it is not exactly what EncodeManifest
/// wrote. FAILED_PRECONDITION if it is sound, but of a format that this program does not know.
absl::StatusOr<CheckpointManifest> ParseManifest(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_MANIFEST_H_
