#include "worker/compute/cpu/plain_lrn.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace slipstream::plain {
namespace {

/// The parts of images that windows do not leave: planes, or whole examples.
struct Unit {
  Unit(const LrnShape& shape, uint32_t examples)
      : is_plane(shape.region == LrnLayer::Region::kWithin),
        channels(is_plane ? 1 : shape.image.channels),
        height(shape.image.height),
        width(shape.image.width),
        size(channels * height * width),
        count(is_plane ? size_t{examples} * shape.image.channels : examples) {}

  const bool is_plane;
  const size_t channels, height, width;
  const size_t size;
  const size_t count;
};

/// Writes to `sums` the sum of each of the unit's values and those at most `reach` away along an
/// axis, which has `length` steps of `stride` values.
void SumAlong(size_t length, size_t stride, size_t reach, const std::vector<float>& values,
              std::vector<float>& sums) {
  std::copy(values.begin(), values.end(), sums.begin());
  const size_t line = length * stride;
  for (size_t distance = 1; distance <= std::min(reach, length - 1); ++distance) {
    // The values of a line that have a neighbour at this distance lie side by side.
    const size_t shift = distance * stride;
    for (size_t begin = 0; begin < values.size(); begin += line) {
      const float* from = values.data() + begin;
      float* to = sums.data() + begin;
      for (size_t i = shift; i < line; ++i) to[i] += from[i - shift];
      for (size_t i = 0; i < line - shift; ++i) to[i] += from[i + shift];
    }
  }
}

/// Replaces each of the unit's values by the sum over its window. `scratch` is as large.
void SumWindows(const Unit& unit, uint32_t size, std::vector<float>& values,
                std::vector<float>& scratch) {
  const size_t reach = size / 2;
  if (unit.is_plane) {
    SumAlong(unit.width, 1, reach, values, scratch);
    SumAlong(unit.height, unit.width, reach, scratch, values);
  } else {
    SumAlong(unit.channels, unit.height * unit.width, reach, values, scratch);
    values.swap(scratch);
  }
}

/// Writes to `factors` scale^−β. The usual β of 3/4 needs only roots, which processors compute by
/// fours.
void MakeFactors(float beta, const std::vector<float>& scales, std::vector<float>& factors) {
  const size_t size = scales.size();
  if (beta == 0.75f) {
    for (size_t i = 0; i < size; ++i) factors[i] = 1 / std::sqrt(scales[i] * std::sqrt(scales[i]));
  } else {
    for (size_t i = 0; i < size; ++i) factors[i] = std::pow(scales[i], -beta);
  }
}

/// The scales 1 + α/N Σ x² of a unit, and the factors of its inputs.
class Factors {
 public:
  Factors(const LrnShape& shape, const Unit& unit)
      : shape_(shape), unit_(unit), scales_(unit.size), factors_(unit.size), scratch_(unit.size) {}

  void Compute(const float* input) {
    for (size_t i = 0; i < unit_.size; ++i) scales_[i] = input[i] * input[i];
    Sum(scales_);
    const float share = shape_.share();
    for (float& scale : scales_) scale = 1 + share * scale;
    MakeFactors(shape_.beta, scales_, factors_);
  }

  /// Replaces each of the values by the sum over its window.
  void Sum(std::vector<float>& values) { SumWindows(unit_, shape_.size, values, scratch_); }

  const std::vector<float>& scales() const { return scales_; }
  const std::vector<float>& factors() const { return factors_; }

 private:
  const LrnShape& shape_;
  const Unit& unit_;
  std::vector<float> scales_, factors_, scratch_;
};

}  // namespace

void LrnForward(const LrnShape& shape, uint32_t count, const float* input, float* output) {
  const Unit unit(shape, count);
  Factors factors(shape, unit);
  for (size_t n = 0; n < unit.count; ++n, input += unit.size, output += unit.size) {
    factors.Compute(input);
    for (size_t i = 0; i < unit.size; ++i) output[i] = input[i] * factors.factors()[i];
  }
}

void LrnInputGradient(const LrnShape& shape, uint32_t count, const float* input,
                      const float* output_gradient, float* input_gradient) {
  const Unit unit(shape, count);
  const float slope = 2 * shape.share() * shape.beta;
  Factors factors(shape, unit);
  std::vector<float> sums(unit.size);
  for (size_t n = 0; n < unit.count; ++n) {
    factors.Compute(input);
    const float* scale = factors.scales().data();
    const float* factor = factors.factors().data();
    for (size_t i = 0; i < unit.size; ++i) {
      sums[i] = output_gradient[i] * input[i] * factor[i] / scale[i];
    }
    // The outputs that an input is part of are those of its own window.
    factors.Sum(sums);
    for (size_t i = 0; i < unit.size; ++i) {
      input_gradient[i] = output_gradient[i] * factor[i] - slope * input[i] * sums[i];
    }
    input += unit.size;
    output_gradient += unit.size;
    input_gradient += unit.size;
  }
}

}  // namespace slipstream::plain
