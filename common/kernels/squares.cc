#include "common/kernels/squares.h"

#include <algorithm>
#include <cstddef>

#include "common/kernels/float_runs.h"

namespace slipstream {
namespace {

constexpr size_t kBlockValues = 1024;

/// The number of sums that run beside each other: as many as two of the widest vectors hold.
constexpr size_t kLanes = 16;

SLIPSTREAM_CPU_DISPATCH
double SquaresOfBlock(const float* values, size_t count) {
  double lanes[kLanes] = {};
  size_t begin = 0;
  for (; begin + kLanes <= count; begin += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[begin + lane];
      lanes[lane] += value * value;
    }
  }
  for (size_t lane = 0; begin + lane < count; ++lane) {
    const double value = values[begin + lane];
    lanes[lane] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double SumOfSquares(std::span<const float> values) {
  double sum = 0;
  for (size_t begin = 0; begin < values.size(); begin += kBlockValues) {
    const size_t count = std::min(kBlockValues, values.size() - begin);
    sum += SquaresOfBlock(values.data() + begin, count);
  }
  return sum;
}

}  // namespace slipstream
