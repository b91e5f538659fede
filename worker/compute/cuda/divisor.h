#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_DIVISOR_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_DIVISOR_H_

#include <cstddef>
#include <cstdint>

#include "worker/compute/cuda/host_device.h"

namespace slipstream::cuda {

/// A number by which many numbers are divided. GPUs have no division instruction: for numbers below
/// 2³¹ the quotient takes two instructions, a multiplication and a shift (Granlund and Montgomery,
/// PLDI '94); for larger ones it takes a loop of about eighty.
class Divisor {
 public:
  /// Numbers below this are divided by the fast method.
  static constexpr size_t kNarrowEnd = size_t{1} << 31;

  /// REQUIRES: 0 < divisor < 2³¹.
  explicit Divisor(uint32_t divisor) : divisor_(divisor) {
    while ((uint64_t{1} << shift_) < divisor) ++shift_;
    // ⌈2^(32 + shift) / divisor⌉ − 2³²; Of adds the 2³² again.
    multiplier_ = static_cast<uint32_t>((((uint64_t{1} << shift_) - divisor) << 32) / divisor + 1);
  }

  /// Returns ⌊number / divisor⌋. REQUIRES: number < 2³¹.
  PS_HOST_DEVICE uint32_t Of(uint32_t number) const {
    const auto high = static_cast<uint32_t>((uint64_t{number} * multiplier_) >> 32);
    return (high + number) >> shift_;
  }

  /// The same for any number.
  PS_HOST_DEVICE size_t Of(size_t number) const { return number / divisor_; }

  PS_HOST_DEVICE uint32_t value() const { return divisor_; }

 private:
  uint32_t divisor_;
  uint32_t multiplier_ = 0;
  uint32_t shift_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_DIVISOR_H_
