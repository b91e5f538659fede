#include "server/storage/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/model_file/model_header.h"
#include "common/process/version.h"
#include "server/storage/block_hash.h"
#include "server/storage/checkpoint_paths.h"

namespace slipstream {
namespace {

static_assert(std::endian::native == std::endian::little, "values lie in the file as in memory");

/// A file that is being written, block by block, and the checksums of its blocks.
class BlockFile {
 public:
  BlockFile(std::string name, std::unique_ptr<DiskFile> file) : file_(std::move(file)) {
    facts_.name = std::move(name);
  }

  absl::Status Append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t left = kBlockBytes - facts_.bytes % kBlockBytes;
      const std::span<const std::byte> piece = bytes.first(std::min(left, bytes.size()));
      if (absl::Status written = file_->Append(piece); !written.ok()) return written;
      hash_.Add(piece);
      facts_.bytes += piece.size();
      if (facts_.bytes % kBlockBytes == 0) facts_.blocks.push_back(hash_.Finish());
      bytes = bytes.subspan(piece.size());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ManifestFile> Finish() {
    if (facts_.bytes % kBlockBytes != 0) facts_.blocks.push_back(hash_.Finish());
    if (absl::Status synced = file_->Sync(); !synced.ok()) return synced;
    return std::move(facts_);
  }

 private:
  const std::unique_ptr<DiskFile> file_;
  BlockHasher hash_;
  ManifestFile facts_;
};

using Pieces = std::vector<std::span<const std::byte>>;

absl::StatusOr<ManifestFile> WritePieces(Disk& disk, const std::string& folder, const char* name,
                                         const Pieces& pieces) {
  absl::StatusOr<std::unique_ptr<DiskFile>> created = disk.Create(folder + "/" + name);
  if (!created.ok()) return created.status();
  BlockFile file(name, *std::move(created));
  for (const std::span<const std::byte> piece : pieces) {
    if (absl::Status written = file.Append(piece); !written.ok()) return written;
  }
  return file.Finish();
}

ModelMetadata DescribePart(const CheckpointFacts& facts) {
  return {{"written_by", fmt::format("slipstream {}", kVersion)},
          {"run", RunDirectoryName(facts.run)},
          {"shard", fmt::format("{}", Value(facts.shard))},
          {"generation", fmt::format("{}", Value(facts.saved.generation))},
          {"version", fmt::format("{}", Value(facts.saved.version))},
          {"range", fmt::format("{}:{}", facts.range.begin, facts.range.end)}};
}

}  // namespace

absl::StatusOr<uint64_t> WriteCheckpoint(Disk& disk, const std::string& folder,
                                         const CheckpointFacts& facts, const TensorLayout& tensors,
                                         std::string_view state,
                                         std::span<const CheckpointArray> arrays) {
  PS_CHECK(!arrays.empty() && arrays.front().name == kWeightsArray);
  PS_CHECK(arrays.front().values.size() == tensors.parameters());
  PS_CHECK(facts.range.size() == tensors.parameters());
  const std::string header = EncodeModelHeader(tensors, DescribePart(facts));
  const auto length = std::bit_cast<std::array<std::byte, 8>>(uint64_t{header.size()});
  Pieces others;
  CheckpointManifest manifest = {.format = kDurableFormat,
                                 .program = std::string(kVersion),
                                 .saved_at = absl::Now(),
                                 .facts = facts,
                                 .arrays = {},
                                 .files = {}};
  for (const CheckpointArray& array : arrays) {
    manifest.arrays.push_back({.name = array.name, .values = array.values.size()});
    if (array.name != kWeightsArray) others.push_back(std::as_bytes(array.values));
  }
  const std::pair<const char*, Pieces> files[] = {
      {kWeightsFile,
       {length, std::as_bytes(std::span(header)), std::as_bytes(arrays.front().values)}},
      {kArraysFile, std::move(others)},
      {kStateFile, {std::as_bytes(std::span(state))}}};
  for (const auto& [name, pieces] : files) {
    absl::StatusOr<ManifestFile> file = WritePieces(disk, folder, name, pieces);
    if (!file.ok()) return file.status();
    manifest.files.push_back(*std::move(file));
  }
  const std::string text = EncodeManifest(manifest);
  const absl::StatusOr<ManifestFile> last =
      WritePieces(disk, folder, kManifestFile, {std::as_bytes(std::span(text))});
  if (!last.ok()) return last.status();
  return manifest.bytes();
}

}  // namespace slipstream
