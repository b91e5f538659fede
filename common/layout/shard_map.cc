#include "common/layout/shard_map.h"

#include <xxhash.h>

#include <algorithm>
#include <string>

namespace slipstream {
namespace {

/// The values of a small tensor that a cut at `position` would leave on the side with fewer; 0 if
/// it splits no small tensor.
size_t ScatteredValues(const std::vector<Tensor>& tensors, size_t position) {
  const auto after =
      std::upper_bound(tensors.begin(), tensors.end(), position,
                       [](size_t value, const Tensor& tensor) { return value < tensor.offset; });
  const Tensor& tensor = *(after - 1);
  if (tensor.size() >= ShardMap::kWholeTensorValuesMax) return 0;
  const size_t before = position - tensor.offset;
  return std::min(before, tensor.size() - before);
}

/// The granule within `move_max` of `ideal` whose cut scatters least; of equals the nearest, of
/// those the lower.
size_t BestCut(const std::vector<Tensor>& tensors, size_t ideal, size_t move_max) {
  size_t best = ideal;
  size_t least = ScatteredValues(tensors, ideal * ShardMap::kCutValues);
  for (size_t move = 1; move <= move_max && least > 0; ++move) {
    for (size_t granule : {ideal - move, ideal + move}) {
      const size_t scattered = ScatteredValues(tensors, granule * ShardMap::kCutValues);
      if (scattered < least) {
        best = granule;
        least = scattered;
      }
    }
  }
  return best;
}

uint64_t FingerprintOf(const TensorLayout& layout, const std::vector<ParameterRange>& ranges) {
  std::string text = "slipstream shard map 1\n" + std::to_string(layout.Fingerprint()) + "\n";
  for (const ParameterRange& range : ranges) {
    text += std::to_string(range.begin) + " " + std::to_string(range.end) + "\n";
  }
  return XXH64(text.data(), text.size(), 0);
}

}  // namespace

absl::StatusOr<ShardMap> ShardMap::Cut(const TensorLayout& layout, uint32_t shards) {
  if (shards == 0) return absl::InvalidArgumentError("a model needs at least one shard");
  const size_t granules = (layout.parameters() + kCutValues - 1) / kCutValues;
  if (granules < shards) {
    return absl::InvalidArgumentError(
        std::to_string(layout.parameters()) + " parameters can be cut into at most " +
        std::to_string(granules) + " shards of at least " + std::to_string(kCutValues) +
        " values, not " + std::to_string(shards));
  }

  // Two neighbours that both move by an eighth of the distance between them cannot meet.
  const size_t move_max = std::min(kCutMoveValuesMax / kCutValues, granules / shards / 8);
  ShardMap map;
  size_t begin = 0;
  for (uint32_t shard = 1; shard < shards; ++shard) {
    const size_t cut = BestCut(layout.tensors(), granules * shard / shards, move_max) * kCutValues;
    map.ranges_.push_back({begin, cut});
    begin = cut;
  }
  map.ranges_.push_back({begin, layout.parameters()});
  map.fingerprint_ = FingerprintOf(layout, map.ranges_);
  return map;
}

}  // namespace slipstream
