#ifndef SLIPSTREAM_COMMON_KERNELS_FINITE_H_
#define SLIPSTREAM_COMMON_KERNELS_FINITE_H_

#include "common/kernels/segments.h"

namespace slipstream {

/// Returns true if no whole value of the payload is NaN or infinite.
bool AllFinite(const Segments& segments);

/// Returns true if the magnitude of every whole value is less than `limit`, and none is NaN.
/// REQUIRES: limit > 0.
bool AllBelow(const Segments& segments, float limit);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_FINITE_H_
