#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_ARENA_MAP_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_ARENA_MAP_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "common/base/check.h"
#include "common/layout/tensor_layout.h"

namespace slipstream::cuda {

/// The positions of a net's parameters on a device. On the device each tensor begins where vector
/// loads may begin, as libraries require; in the host's flat vector tensors follow one another
/// without gaps. There are as few gaps as that allows, because tensors without a gap between them
/// are copied in one piece. Positions are in values.
///
/// Thread-safe: const after construction (Append is construction).
class ArenaMap {
 public:
  static constexpr size_t kAlignment = 4;  // 16 bytes, the widest load.

  /// Appends the next tensor. REQUIRES: it is not empty, and begins where the last one ended.
  void Append(ParameterRange tensor) {
    PS_CHECK(tensor.size() > 0);
    PS_CHECK(tensor.begin == (tensors_.empty() ? 0 : tensors_.rbegin()->second.range.end));
    tensors_[tensor.begin] = {tensor, size_};
    size_ = (size_ + tensor.size() + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// The number of values on the device, including gaps.
  size_t size() const { return size_; }

  /// Returns the position on the device. REQUIRES: `position` belongs to a parameter that was
  /// appended.
  size_t OnDevice(size_t position) const {
    const Placed& placed = At(position);
    return placed.begin + (position - placed.range.begin);
  }

  /// Calls part(host begin, device begin, size), in order, for the pieces of `range` that are
  /// contiguous on the device.
  template <typename Part>
  void ForEachPart(ParameterRange range, Part part) const {
    while (range.begin < range.end) {
      const size_t begin = OnDevice(range.begin);
      size_t end = std::min(range.end, At(range.begin).range.end);
      while (end < range.end && OnDevice(end) - begin == end - range.begin) {
        end = std::min(range.end, At(end).range.end);
      }
      part(range.begin, begin, end - range.begin);
      range.begin = end;
    }
  }

 private:
  struct Placed {
    ParameterRange range;
    size_t begin = 0;  // Position on the device.
  };

  const Placed& At(size_t position) const {
    const auto after = tensors_.upper_bound(position);
    PS_CHECK(after != tensors_.begin());
    const Placed& placed = std::prev(after)->second;
    PS_CHECK(position < placed.range.end);
    return placed;
  }

  std::map<size_t, Placed> tensors_;  // By their beginning in the flat vector.
  size_t size_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_ARENA_MAP_H_
