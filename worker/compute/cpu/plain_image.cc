#include "worker/compute/cpu/plain_image.h"

#include <algorithm>
#include <cstddef>

namespace slipstream::plain {
namespace {

struct Window {
  uint32_t top = 0, bottom = 0, left = 0, right = 0;  // Half-open ranges.

  uint32_t elements() const { return (bottom - top) * (right - left); }
};

Window WindowOf(const PoolShape& shape, uint32_t y, uint32_t x) {
  Window window;
  window.top = y * shape.stride;
  window.left = x * shape.stride;
  window.bottom = std::min(window.top + shape.kernel, shape.input.height);
  window.right = std::min(window.left + shape.kernel, shape.input.width);
  return window;
}

size_t LargestIn(const Window& window, uint32_t width, const float* plane) {
  size_t largest = size_t{window.top} * width + window.left;
  for (uint32_t y = window.top; y < window.bottom; ++y) {
    for (uint32_t x = window.left; x < window.right; ++x) {
      const size_t here = size_t{y} * width + x;
      if (plane[here] > plane[largest]) largest = here;
    }
  }
  return largest;
}

float MeanOf(const Window& window, uint32_t width, const float* plane) {
  float sum = 0;
  for (uint32_t y = window.top; y < window.bottom; ++y) {
    for (uint32_t x = window.left; x < window.right; ++x) sum += plane[size_t{y} * width + x];
  }
  return sum / static_cast<float>(window.elements());
}

// Calls visit(weight index, input index, output index) for every product of one image's
// convolution. Indices are those of the whole weight and of one example.
template <typename Visit>
void ForEachProduct(const Conv2dShape& shape, Visit visit) {
  const ExampleShape& in = shape.input;
  const ExampleShape& out = shape.output;
  size_t weight = 0;
  for (uint32_t to = 0; to < out.channels; ++to) {
    for (uint32_t from = 0; from < in.channels; ++from) {
      for (uint32_t ky = 0; ky < shape.kernel; ++ky) {
        for (uint32_t kx = 0; kx < shape.kernel; ++kx, ++weight) {
          for (uint32_t y = 0; y < out.height; ++y) {
            // For rows above the image, the unsigned subtraction wraps round to a large value.
            const uint32_t in_y = y * shape.stride + ky - shape.padding;
            if (in_y >= in.height) continue;
            for (uint32_t x = 0; x < out.width; ++x) {
              const uint32_t in_x = x * shape.stride + kx - shape.padding;
              if (in_x >= in.width) continue;
              visit(weight, (size_t{from} * in.height + in_y) * in.width + in_x,
                    (size_t{to} * out.height + y) * out.width + x);
            }
          }
        }
      }
    }
  }
}

}  // namespace

void Conv2dForward(const Conv2dShape& shape, uint32_t count, const float* input,
                   const float* weight, const float* bias, float* output) {
  const size_t plane = size_t{shape.output.height} * shape.output.width;
  for (uint32_t example = 0; example < count; ++example) {
    for (uint32_t channel = 0; channel < shape.output.channels; ++channel) {
      std::fill_n(output + channel * plane, plane, bias[channel]);
    }
    ForEachProduct(shape, [&](size_t w, size_t i, size_t o) { output[o] += weight[w] * input[i]; });
    input += shape.input.elements();
    output += shape.output.elements();
  }
}

void Conv2dParameterGradients(const Conv2dShape& shape, uint32_t count, const float* input,
                              const float* output_gradient, float* weight_gradient,
                              float* bias_gradient) {
  const size_t plane = size_t{shape.output.height} * shape.output.width;
  std::fill_n(weight_gradient, shape.weights(), 0.0f);
  std::fill_n(bias_gradient, shape.output.channels, 0.0f);
  for (uint32_t example = 0; example < count; ++example) {
    for (size_t o = 0; o < shape.output.elements(); ++o) {
      bias_gradient[o / plane] += output_gradient[o];
    }
    ForEachProduct(shape, [&](size_t w, size_t i, size_t o) {
      weight_gradient[w] += output_gradient[o] * input[i];
    });
    input += shape.input.elements();
    output_gradient += shape.output.elements();
  }
}

void Conv2dInputGradient(const Conv2dShape& shape, uint32_t count, const float* weight,
                         const float* output_gradient, float* input_gradient) {
  std::fill_n(input_gradient, count * shape.input.elements(), 0.0f);
  for (uint32_t example = 0; example < count; ++example) {
    ForEachProduct(shape, [&](size_t w, size_t i, size_t o) {
      input_gradient[i] += weight[w] * output_gradient[o];
    });
    input_gradient += shape.input.elements();
    output_gradient += shape.output.elements();
  }
}

void PoolForward(const PoolShape& shape, uint32_t count, const float* input, float* output) {
  const ExampleShape& in = shape.input;
  for (size_t plane = 0; plane < size_t{count} * in.channels; ++plane) {
    for (uint32_t y = 0; y < shape.output.height; ++y) {
      for (uint32_t x = 0; x < shape.output.width; ++x) {
        const Window window = WindowOf(shape, y, x);
        *output++ = shape.kind == PoolLayer::Kind::kMax ? input[LargestIn(window, in.width, input)]
                                                        : MeanOf(window, in.width, input);
      }
    }
    input += size_t{in.height} * in.width;
  }
}

void PoolInputGradient(const PoolShape& shape, uint32_t count, const float* input,
                       const float* output_gradient, float* input_gradient) {
  const ExampleShape& in = shape.input;
  std::fill_n(input_gradient, count * in.elements(), 0.0f);
  for (size_t plane = 0; plane < size_t{count} * in.channels; ++plane) {
    for (uint32_t y = 0; y < shape.output.height; ++y) {
      for (uint32_t x = 0; x < shape.output.width; ++x) {
        const Window window = WindowOf(shape, y, x);
        const float gradient = *output_gradient++;
        if (shape.kind == PoolLayer::Kind::kMax) {
          input_gradient[LargestIn(window, in.width, input)] += gradient;
          continue;
        }
        const float share = gradient / static_cast<float>(window.elements());
        for (uint32_t in_y = window.top; in_y < window.bottom; ++in_y) {
          for (uint32_t in_x = window.left; in_x < window.right; ++in_x) {
            input_gradient[size_t{in_y} * in.width + in_x] += share;
          }
        }
      }
    }
    input += size_t{in.height} * in.width;
    input_gradient += size_t{in.height} * in.width;
  }
}

}  // namespace slipstream::plain
