#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_ARENA_MAP_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_ARENA_MAP_H_

#include <algorithm>
#include <cstddef>
#include <map>

#include "common/base/check.h"
#include "common/layout/tensor_layout.h"

namespace slipstream::cuda {

/// Where the parameters of each layer lie on a device: each layer's begin where vector loads may,
/// which libraries ask for, while in the flat vector of the host they follow one another without
/// gaps. Positions are in values.
///
/// Thread-safe: const after construction (Append is construction).
class ArenaMap {
 public:
  static constexpr size_t kAlignment = 64;  // 256 bytes, as cudaMalloc aligns.

  /// The parameters of the next layer. REQUIRES: begins where the last one ended.
  void Append(ParameterRange layer) {
    PS_CHECK(layer.begin == (layers_.empty() ? 0 : layers_.rbegin()->second.layer.end));
    layers_[layer.begin] = {layer, size_};
    size_ = (size_ + layer.size() + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// Values on the device, gaps included.
  size_t size() const { return size_; }

  /// REQUIRES: `position` is of a parameter that was appended, or the end of its layer if that is
  /// the last one.
  size_t OnDevice(size_t position) const {
    PS_CHECK(!layers_.empty());
    const Placed& placed = std::prev(layers_.upper_bound(position))->second;
    PS_CHECK(position <= placed.layer.end);
    return placed.begin + (position - placed.layer.begin);
  }

  /// Calls part(host begin, device begin, size) for the pieces of `range` that are in one piece on
  /// the device, in order.
  template <typename Part>
  void ForEachPart(ParameterRange range, Part part) const {
    while (range.begin < range.end) {
      const Placed& placed = std::prev(layers_.upper_bound(range.begin))->second;
      const size_t end = std::min(range.end, placed.layer.end);
      part(range.begin, OnDevice(range.begin), end - range.begin);
      range.begin = end;
    }
  }

 private:
  struct Placed {
    ParameterRange layer;
    size_t begin = 0;  // On the device.
  };

  std::map<size_t, Placed> layers_;  // By where they begin in the flat vector.
  size_t size_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_ARENA_MAP_H_
