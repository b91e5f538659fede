#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_LAYOUT_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace slipstream {

/// Examples in the plain layout: one after another, `elements` values each.
template <typename Value>
struct PlainExamples {
  Value* values;
  uint32_t count;
  size_t elements;
};

/// Computes innermost[element][image] = plain[image][element]; images beyond the examples become
/// zero. REQUIRES: images ≥ plain.count.
void ToInnermost(const PlainExamples<const float>& plain, uint32_t images, float* innermost);

/// Does the reverse, for the first plain.count images.
void FromInnermost(const float* innermost, uint32_t images, const PlainExamples<float>& plain);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_LAYOUT_H_
