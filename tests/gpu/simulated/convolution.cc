#include "tests/gpu/simulated/convolution.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace slipstream::simulated {

bool Convolution::Fits() const {
  const auto extent = [this](int length, int kernel) {
    return (length + 2 * padding - kernel) / stride + 1;
  };
  return in.count == out.count && filters.count == out.channels &&
         filters.channels == in.channels && out.height == extent(in.height, filters.height) &&
         out.width == extent(in.width, filters.width);
}

/// Calls row(filter_at, input_at, output_at, count) for each value of a filter and each row of the
/// output to which it contributes. The row has `count` output values, and the input values that
/// meet them are `stride` apart.
template <typename Row>
void Convolution::ForEachRow(Row row) const {
  const auto rotated = [this](int i, int size) {
    return static_cast<int>((static_cast<unsigned>(i) + first) % static_cast<unsigned>(size));
  };
  for (int i = 0; i < out.count; ++i) {
    const int image = rotated(i, out.count);
    for (int j = 0; j < filters.size(); ++j) {
      const int at = rotated(j, filters.size());
      const int kx = at % filters.width;
      const int ky = at / filters.width % filters.height;
      const int from = at / filters.plane() % filters.channels;
      const int to = at / filters.plane() / filters.channels;
      // The positions of the output whose input lies within the image.
      const int begin = std::max(0, (padding - kx + stride - 1) / stride);
      const int end = std::min(out.width, (in.width - 1 + padding - kx) / stride + 1);
      if (begin >= end) continue;
      for (int y = 0; y < out.height; ++y) {
        const int input_y = y * stride + ky - padding;
        if (input_y < 0 || input_y >= in.height) continue;
        const int input_at = ((image * in.channels + from) * in.height + input_y) * in.width +
                             begin * stride + kx - padding;
        const int output_at = ((image * out.channels + to) * out.height + y) * out.width + begin;
        row(at, input_at, output_at, end - begin);
      }
    }
  }
}

void Convolution::Forward(const float* input, const float* filter, float* output) const {
  std::fill_n(output, out.size(), 0.0f);
  ForEachRow([&](int at, int input_at, int output_at, int count) {
    const float weight = filter[at];
    for (int x = 0; x < count; ++x) {
      output[output_at + x] += weight * input[input_at + x * stride];
    }
  });
}

void Convolution::FilterGradient(const float* input, const float* gradient,
                                 float* filter_gradient) const {
  std::fill_n(filter_gradient, filters.size(), 0.0f);
  std::vector<float> products(static_cast<size_t>(out.width));
  ForEachRow([&](int at, int input_at, int output_at, int count) {
    for (int x = 0; x < count; ++x) {
      products[static_cast<size_t>(x)] = gradient[output_at + x] * input[input_at + x * stride];
    }
    filter_gradient[at] += std::accumulate(products.begin(), products.begin() + count, 0.0f);
  });
}

void Convolution::InputGradient(const float* filter, const float* gradient,
                                float* input_gradient) const {
  std::fill_n(input_gradient, in.size(), 0.0f);
  ForEachRow([&](int at, int input_at, int output_at, int count) {
    const float weight = filter[at];
    for (int x = 0; x < count; ++x) {
      input_gradient[input_at + x * stride] += weight * gradient[output_at + x];
    }
  });
}

}  // namespace slipstream::simulated
