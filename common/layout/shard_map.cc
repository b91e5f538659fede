#include "common/layout/shard_map.h"

#include <xxhash.h>

#include <algorithm>
#include <string>
#include <utility>

namespace slipstream {
namespace {

/// Returns how many values of a small tensor a cut at `position` would leave on the side with
/// fewer; 0 if it splits no small tensor.
size_t ScatteredValues(const TensorLayout& layout, size_t position) {
  const Tensor& tensor = layout.tensors()[layout.TensorAt(position)];
  if (tensor.size() >= ShardMap::kWholeTensorValuesMax) return 0;
  const size_t before = position - tensor.offset;
  return std::min(before, tensor.size() - before);
}

/// Returns the granule within `move_max` of `ideal` whose cut scatters least; among equals the
/// nearest, and among those the lower.
size_t BestCut(const TensorLayout& layout, size_t ideal, size_t move_max) {
  size_t best = ideal;
  size_t least = ScatteredValues(layout, ideal * ShardMap::kCutValues);
  for (size_t move = 1; move <= move_max && least > 0; ++move) {
    for (size_t granule : {ideal - move, ideal + move}) {
      const size_t scattered = ScatteredValues(layout, granule * ShardMap::kCutValues);
      if (scattered < least) {
        best = granule;
        least = scattered;
      }
    }
  }
  return best;
}

/// Says why a model of `count` such `parts` cannot be cut.
std::string TooFew(size_t count, const std::string& parts, uint32_t shards) {
  return std::to_string(shards) + " servers share the model, and it has only " +
         std::to_string(count) + " " + parts + "; use at most " + std::to_string(count) +
         (count == 1 ? " server" : " servers");
}

uint64_t FingerprintOf(const TensorLayout& layout, const std::vector<ParameterRange>& ranges) {
  std::string text = "slipstream shard map 1\n" + std::to_string(layout.Fingerprint()) + "\n";
  for (const ParameterRange& range : ranges) {
    text += std::to_string(range.begin) + " " + std::to_string(range.end) + "\n";
  }
  return XXH64(text.data(), text.size(), 0);
}

/// Returns where all shards but the first begin: on granules, or anywhere if these are too few.
absl::StatusOr<std::vector<size_t>> CutOnGranules(const TensorLayout& layout, uint32_t shards) {
  constexpr size_t kCutValues = ShardMap::kCutValues;
  const size_t values = layout.parameters();
  const size_t granules = (values + kCutValues - 1) / kCutValues;
  std::vector<size_t> cuts;
  if (granules < shards) {
    if (values < shards) {
      return absl::InvalidArgumentError(
          TooFew(values, values == 1 ? "parameter" : "parameters", shards));
    }
    for (uint32_t shard = 1; shard < shards; ++shard) cuts.push_back(values * shard / shards);
    return cuts;
  }

  // Two neighbouring cuts that both move by an eighth of the distance between them cannot meet.
  const size_t move_max = std::min(ShardMap::kCutMoveValuesMax / kCutValues, granules / shards / 8);
  for (uint32_t shard = 1; shard < shards; ++shard) {
    cuts.push_back(BestCut(layout, granules * shard / shards, move_max) * kCutValues);
  }
  return cuts;
}

/// Returns where all shards but the first begin, between tensors.
absl::StatusOr<std::vector<size_t>> CutBetweenTensors(const TensorLayout& layout, uint32_t shards) {
  const std::vector<Tensor>& tensors = layout.tensors();
  if (tensors.size() < shards) {
    return absl::InvalidArgumentError(
        TooFew(tensors.size(), "tensors that have to stay whole", shards));
  }

  std::vector<size_t> cuts;
  size_t first = 0;  // The last cut lies before this tensor.
  for (uint32_t shard = 1; shard < shards; ++shard) {
    const size_t share = layout.parameters() * shard / shards;
    const size_t last = tensors.size() - (shards - shard);  // Leaves a tensor to each later shard.
    for (++first; first < last; ++first) {
      const size_t here = tensors[first].offset;
      const size_t next = tensors[first + 1].offset;
      if (next >= share && (here >= share || share - here <= next - share)) break;
    }
    cuts.push_back(tensors[first].offset);
  }
  return cuts;
}

}  // namespace

absl::StatusOr<ShardMap> ShardMap::Cut(const TensorLayout& layout, uint32_t shards,
                                       const CutOptions& options) {
  if (shards == 0) return absl::InvalidArgumentError("a model needs at least one shard");
  const absl::StatusOr<std::vector<size_t>> cuts = options.keeps_tensors_whole
                                                       ? CutBetweenTensors(layout, shards)
                                                       : CutOnGranules(layout, shards);
  if (!cuts.ok()) return cuts.status();

  std::vector<ParameterRange> ranges;
  size_t begin = 0;
  for (const size_t cut : *cuts) {
    ranges.push_back({begin, cut});
    begin = cut;
  }
  ranges.push_back({begin, layout.parameters()});
  return FromRanges(layout, std::move(ranges));
}

absl::StatusOr<ShardMap> ShardMap::FromRanges(const TensorLayout& layout,
                                              std::vector<ParameterRange> ranges) {
  size_t end = 0;
  for (size_t shard = 0; shard < ranges.size(); ++shard) {
    if (ranges[shard].begin != end || ranges[shard].end <= end) {
      return absl::InvalidArgumentError("shard " + std::to_string(shard) + " holds values " +
                                        std::to_string(ranges[shard].begin) + " to " +
                                        std::to_string(ranges[shard].end) +
                                        ", and the shards before it end at " + std::to_string(end));
    }
    end = ranges[shard].end;
  }
  if (ranges.empty() || end != layout.parameters()) {
    return absl::InvalidArgumentError("the shards hold " + std::to_string(end) + " of " +
                                      std::to_string(layout.parameters()) + " values");
  }
  ShardMap map;
  map.ranges_ = std::move(ranges);
  map.fingerprint_ = FingerprintOf(layout, map.ranges_);
  return map;
}

}  // namespace slipstream
