#ifndef SLIPSTREAM_COMMON_KERNELS_FLUSHED_SUBNORMALS_H_
#define SLIPSTREAM_COMMON_KERNELS_FLUSHED_SUBNORMALS_H_

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace slipstream {

/// While such an object lives, its thread's arithmetic takes subnormal numbers, those below 2^-126,
/// for 0 and makes none. Processors take a hundred cycles and more for each operation with one, and
/// the momentum of a parameter whose gradient stays 0 comes down to them and remains there. On
/// processors other than x86 nothing changes.
class FlushedSubnormals {
 public:
#ifdef __SSE__
  FlushedSubnormals() { _mm_setcsr(before_ | kResultsAreZero | kOperandsAreZero); }
  ~FlushedSubnormals() { _mm_setcsr(before_); }
#else
  FlushedSubnormals() {}
  ~FlushedSubnormals() {}
#endif
  FlushedSubnormals(const FlushedSubnormals&) = delete;
  FlushedSubnormals& operator=(const FlushedSubnormals&) = delete;

#ifdef __SSE__
 private:
  static constexpr unsigned kResultsAreZero = 0x8000;
  static constexpr unsigned kOperandsAreZero = 0x0040;

  const unsigned before_ = _mm_getcsr();
#endif
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_FLUSHED_SUBNORMALS_H_
