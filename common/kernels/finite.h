#ifndef SLIPSTREAM_COMMON_KERNELS_FINITE_H_
#define SLIPSTREAM_COMMON_KERNELS_FINITE_H_

#include "common/kernels/segments.h"

namespace slipstream {

/// True if no whole value of the payload is NaN or infinite.
bool AllFinite(const Segments& segments);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_FINITE_H_
