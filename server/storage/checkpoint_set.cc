#include "server/storage/checkpoint_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <list>

#include "common/layout/tensor_parts.h"
#include "common/model_file/model_file.h"
#include "server/core/coordinator/initialization.h"

namespace slipstream {
namespace {

/// Returns the tensors of a checkpoint, or the damage that hides them.
absl::StatusOr<TensorLayout> TensorsOf(const std::string& path, const CheckpointFolder& folder) {
  const absl::StatusOr<ModelFile> file = ModelFile::Open(path + "/" + kWeightsFile);
  if (file.ok()) return file->layout();
  const std::vector<absl::Status> damage = folder.Verify();
  return damage.empty() ? file.status() : damage.front();
}

/// Reads the part of the range that a checkpoint has, up to `end`.
absl::Status ReadPart(const CheckpointFolder& folder, const ParameterRange& range, uint64_t begin,
                      uint64_t end, std::span<const LoadedArray> arrays) {
  const ParameterRange& has = folder.manifest().facts.range;
  const bool is_whole = begin == has.begin && end == has.end;
  std::list<std::vector<float>> whole;  // The checkpoint's arrays, where only a part is wanted.
  std::vector<LoadedArray> loaded;
  for (const LoadedArray& array : arrays) {
    loaded.push_back({array.name, is_whole ? array.values.subspan(begin - range.begin, has.size())
                                           : std::span(whole.emplace_back(has.size()))});
  }
  absl::Status read = folder.ReadArrays(loaded);
  if (!read.ok() || is_whole) return read;
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(loaded[i].values.subspan(begin - has.begin, end - begin),
                      arrays[i].values.subspan(begin - range.begin).begin());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckpointSet> CheckpointSet::Open(Disk& disk,
                                                  std::vector<ListedCheckpoint> chosen) {
  CheckpointSet set;
  for (const ListedCheckpoint& each : chosen) {
    absl::StatusOr<CheckpointFolder> folder = CheckpointFolder::Open(disk, each.path);
    if (!folder.ok()) return folder.status();
    absl::StatusOr<TensorLayout> tensors = TensorsOf(each.path, *folder);
    if (!tensors.ok()) return tensors.status();
    set.parts_.push_back({*std::move(folder), *std::move(tensors)});
  }
  set.chosen_ = std::move(chosen);
  return set;
}

std::string CheckpointSet::VersionText() const {
  std::vector<uint64_t> versions;
  for (const ListedCheckpoint& each : chosen_) versions.push_back(Value(each.name.version));
  const bool is_one = std::ranges::all_of(
      chosen_, [this](const ListedCheckpoint& each) { return each.name == chosen_.front().name; });
  if (is_one) return fmt::format("version {}", versions.front());
  return fmt::format("versions {} (shards 0 and up, the newest of each)", fmt::join(versions, ","));
}

absl::StatusOr<TensorLayout> CheckpointSet::JoinTensors() const {
  uint64_t end = 0;
  std::vector<TensorLayout> tensors;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].range().begin != end) {
      return absl::DataLossError(
          fmt::format("{}: begins at value {} of the model, and the shards before it end at {}: "
                      "the checkpoints of a shard are missing",
                      chosen_[i].path, parts_[i].range().begin, end));
    }
    end = parts_[i].range().end;
    tensors.push_back(parts_[i].tensors);
  }
  absl::StatusOr<TensorLayout> joined = JoinParts(tensors);
  if (joined.ok()) return joined;
  return absl::DataLossError(fmt::format("{}: the checkpoints of a shard are missing",
                                         std::string(joined.status().message())));
}

std::string CheckpointSet::DifferenceFrom(const TensorLayout& model) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const ParameterRange& range = parts_[i].range();
    if (range.end > model.parameters()) {
      return fmt::format("{}: ends at value {} of a model, and the run's has {}", chosen_[i].path,
                         range.end, model.parameters());
    }
    const std::string difference = FirstDifference(PartOf(model, range), parts_[i].tensors);
    if (!difference.empty()) return fmt::format("{}: {}", chosen_[i].path, difference);
  }
  return "";
}

absl::Status CheckpointSet::ReadRange(const ParameterRange& range,
                                      std::span<const LoadedArray> arrays) const {
  uint64_t next = range.begin;
  for (const Part& part : parts_) {
    const uint64_t end = std::min<uint64_t>(range.end, part.range().end);
    if (part.range().begin > next || end <= next) continue;
    const absl::Status read = ReadPart(part.folder, range, next, end, arrays);
    if (!read.ok()) return read;
    next = end;
  }
  if (next == range.end) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("the values from {} on of the model, up to {}, are missing: no checkpoint of run "
                  "{} that is there has them",
                  next, range.end, RunText()));
}

absl::StatusOr<std::string> CheckpointSet::ReadStateOf(const ParameterRange& range) const {
  const auto found = std::ranges::find_if(parts_, [&range](const Part& part) {
    return part.range().begin <= range.begin && range.begin < part.range().end;
  });
  if (found != parts_.end()) return found->folder.ReadState();
  return absl::DataLossError(fmt::format("no checkpoint has value {} of the model", range.begin));
}

std::vector<std::string> CheckpointSet::ArrayNames() const {
  std::vector<std::string> names;
  for (const ManifestArray& array : parts_.front().folder.manifest().arrays) {
    // Weights of older versions are for gradients on their way.
    if (!IsNameOfBase(array.name)) names.push_back(array.name);
  }
  return names;
}

}  // namespace slipstream
