#ifndef SLIPSTREAM_COMMON_LAYOUT_SHARD_MAP_H_
#define SLIPSTREAM_COMMON_LAYOUT_SHARD_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

/// The options for cutting a model.
struct CutOptions {
  /// Set if tensors stay whole: cuts lie between tensors, each as near to the equal share as
  /// tensors allow, without alignment.
  bool keeps_tensors_whole = false;
};

/// Which shard owns which contiguous range of the flat parameter vector. Ranges are contiguous and
/// none is empty.
///
/// Unless tensors have to stay whole, all cuts lie on 64-byte boundaries (16 values; a model with
/// fewer such granules than shards is cut in equal parts, wherever the cuts lie), so a large
/// tensor is split where a cut falls. A cut that would split a tensor under `kWholeTensorValuesMax`
/// is moved to the boundary nearby that splits off the least, so that small tensors are not
/// scattered; alignment may still split off fewer than 16 values. No cut moves by more than
/// `kCutMoveValuesMax` values or an eighth of an equal share, so a range differs from an equal
/// share by less than twice that plus two granules.
///
/// Thread-safe: const after construction.
class ShardMap {
 public:
  static constexpr size_t kCutValues = 16;
  static constexpr size_t kWholeTensorValuesMax = 1024;
  static constexpr size_t kCutMoveValuesMax = kWholeTensorValuesMax;

  ShardMap() = default;

  /// Cuts a model. Fails if there are no shards, or more shards than values, or than tensors where
  /// these stay whole: each shard gets at least one.
  static absl::StatusOr<ShardMap> Cut(const TensorLayout& layout, uint32_t shards,
                                      const CutOptions& options = {});

  /// Makes the map that a peer has cut. Fails, naming the shard, if the ranges do not cover the
  /// layout one after another, or if one is empty.
  static absl::StatusOr<ShardMap> FromRanges(const TensorLayout& layout,
                                             std::vector<ParameterRange> ranges);

  uint32_t shards() const { return static_cast<uint32_t>(ranges_.size()); }
  ParameterRange range(ShardId shard) const { return ranges_.at(Value(shard)); }
  size_t parameters() const { return ranges_.empty() ? 0 : ranges_.back().end; }

  /// Returns a number that is equal for equal layouts with equal ranges.
  uint64_t fingerprint() const { return fingerprint_; }

  friend bool operator==(const ShardMap&, const ShardMap&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.ranges_, self.fingerprint_);
  }

 private:
  std::vector<ParameterRange> ranges_;
  uint64_t fingerprint_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LAYOUT_SHARD_MAP_H_
