#include "worker/compute/cpu/innermost_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/philox.h"
#include "common/memory/aligned_buffer.h"
#include "worker/compute/cpu/innermost_layout.h"
#include "worker/compute/cpu/plain_image.h"
#include "worker/compute/cpu/plain_vector.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream {
namespace {

using Values = std::vector<float>;

// The sums have at most 16 · 7² products, or as many as a batch has positions. Their order differs,
// and they use fused multiply-adds.
constexpr float kTolerance = 2e-5f;

Values RandomValues(RandomStream& random, size_t size) {
  Values values(size);
  for (float& value : values) value = random.Uniform(-1, 1);
  return values;
}

void ExpectNear(const Values& actual, const Values& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 1e-3f;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], kTolerance * largest) << what << "[" << i << "]";
  }
}

/// One step on the plain kernels, layer by layer.
struct PlainStep {
  PlainStep(const InnermostShape& s, uint32_t examples) : step(s), count(examples) {
    const uint32_t height = s.in_height + 2 * s.padding - s.kernel + 1;
    const uint32_t width = s.in_width + 2 * s.padding - s.kernel + 1;
    conv = {{s.in_channels, s.in_height, s.in_width},
            {s.out_channels, height, width},
            s.kernel,
            1,
            s.padding};
    pool = {PoolLayer::Kind::kMax,
            conv.output,
            {s.out_channels, s.out_height, s.out_width},
            s.window,
            s.window};
  }

  Values Forward(const Values& input, const Values& weight, const Values& bias) {
    conv_output.resize(count * conv.output.elements());
    plain::Conv2dForward(conv, count, input.data(), weight.data(), bias.data(), conv_output.data());
    Values output(count * step.outputs());
    plain::PoolForward(pool, count, conv_output.data(), output.data());
    if (step.relu) plain::Relu(output, output);
    return output;
  }

  struct Gradients {
    Values input, weight, bias;
  };

  Gradients Backward(const Values& input, const Values& weight, const Values& output,
                     Values gradient) const {
    if (step.relu) plain::ReluInputGradient(output, gradient, gradient);
    Values conv_gradient(conv_output.size());
    plain::PoolInputGradient(pool, count, conv_output.data(), gradient.data(),
                             conv_gradient.data());
    Gradients result = {Values(input.size()), Values(weight.size()), Values(step.out_channels)};
    plain::Conv2dParameterGradients(conv, count, input.data(), conv_gradient.data(),
                                    result.weight.data(), result.bias.data());
    plain::Conv2dInputGradient(conv, count, weight.data(), conv_gradient.data(),
                               result.input.data());
    return result;
  }

  InnermostShape step;
  uint32_t count;
  Conv2dShape conv;
  PoolShape pool;
  Values conv_output;
};

InnermostShape RandomShape(RandomStream& random) {
  InnermostShape shape;
  shape.in_channels = 1 + random.Below(16);
  shape.out_channels = 1 + random.Below(16);
  shape.kernel = 1 + random.Below(7);
  shape.padding = random.Below(shape.kernel);
  shape.window = 1 + random.Below(2);
  shape.relu = random.Below(2) == 0;
  // There is at least one output, and some shapes have columns that the pool leaves out.
  const uint32_t least = shape.kernel + shape.window;
  shape.in_height = least + random.Below(5) - std::min(2 * shape.padding, least - 1);
  shape.in_width = least + random.Below(5) - std::min(2 * shape.padding, least - 1);
  shape.out_height = (shape.in_height + 2 * shape.padding - shape.kernel + 1) / shape.window;
  shape.out_width = (shape.in_width + 2 * shape.padding - shape.kernel + 1) / shape.window;
  return shape;
}

AlignedBuffer<float> Innermost(const Values& plain, uint32_t count, size_t elements,
                               uint32_t images) {
  AlignedBuffer<float> innermost(elements * images);
  ToInnermost({plain.data(), count, elements}, images, innermost.data());
  return innermost;
}

Values Plain(const AlignedBuffer<float>& innermost, uint32_t count, size_t elements,
             uint32_t images) {
  Values plain(count * elements);
  FromInnermost(innermost.data(), images, {plain.data(), count, elements});
  return plain;
}

void ExpectAgreesWithThePlainKernels(const InnermostKernels& kernels, const InnermostShape& shape,
                                     uint32_t count, RandomStream& random) {
  const Values input = RandomValues(random, count * shape.inputs());
  const Values weight = RandomValues(
      random, size_t{shape.out_channels} * shape.in_channels * shape.kernel * shape.kernel);
  const Values bias = RandomValues(random, shape.out_channels);
  const Values gradient = RandomValues(random, count * shape.outputs());
  PlainStep plain(shape, count);
  const Values expected_output = plain.Forward(input, weight, bias);
  const PlainStep::Gradients expected = plain.Backward(input, weight, expected_output, gradient);

  const uint32_t images = (count + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
  const auto inputs = Innermost(input, count, shape.inputs(), images);
  const auto gradients = Innermost(gradient, count, shape.outputs(), images);
  AlignedBuffer<float> outputs(shape.outputs() * images);
  AlignedBuffer<uint8_t> winners(shape.outputs() * images);
  kernels.forward(shape, images, inputs.data(), weight.data(), bias.data(), outputs.data(),
                  winners.data());
  AlignedBuffer<float> conv_gradient(shape.conv_outputs() * images);
  // Run twice, to check that the second result is added.
  Values bias_gradient(bias.size()), weight_gradient(weight.size());
  for (const bool first : {true, false}) {
    kernels.spread_gradient(shape, images, gradients.data(), winners.data(), conv_gradient.data(),
                            first, bias_gradient.data());
    kernels.weight_gradient(shape, images, inputs.data(), conv_gradient.data(), first,
                            weight_gradient.data());
  }
  AlignedBuffer<float> input_gradient(shape.inputs() * images);
  kernels.input_gradient(shape, images, weight.data(), conv_gradient.data(), input_gradient.data());

  for (float& value : bias_gradient) value /= 2;
  for (float& value : weight_gradient) value /= 2;
  ExpectNear(Plain(outputs, count, shape.outputs(), images), expected_output, "output");
  ExpectNear(bias_gradient, expected.bias, "bias gradient");
  ExpectNear(weight_gradient, expected.weight, "weight gradient");
  ExpectNear(Plain(input_gradient, count, shape.inputs(), images), expected.input,
             "input gradient");
}

TEST(InnermostKernelsTest, AgreeWithThePlainKernelsOnRandomShapes) {
  if (AvailableInnermostKernels().empty()) GTEST_SKIP() << "this processor has none";
  constexpr uint32_t kCounts[] = {1, 3, 31, 32, 63, 64};
  for (const InnermostKernels* kernels : AvailableInnermostKernels()) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      RandomStream random(seed, 0);
      const uint32_t count = kCounts[seed % std::size(kCounts)];
      const InnermostShape shape = RandomShape(random);
      SCOPED_TRACE(testing::Message()
                   << kernels->name << " seed " << seed << ": " << count << " images of "
                   << shape.in_channels << "x" << shape.in_height << "x" << shape.in_width << " to "
                   << shape.out_channels << " channels, kernel " << shape.kernel << ", padding "
                   << shape.padding << ", window " << shape.window << ", relu " << shape.relu);

      ExpectAgreesWithThePlainKernels(*kernels, shape, count, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(InnermostKernelsTest, LayoutsConvertThereAndBack) {
  RandomStream random(1, 0);
  for (const uint32_t count : {1u, 3u, 16u, 31u, 64u}) {
    for (const size_t elements : {1u, 15u, 16u, 50u}) {
      const uint32_t images = count + random.Below(3);
      const Values plain = RandomValues(random, count * elements);

      const AlignedBuffer<float> innermost = Innermost(plain, count, elements, images);

      EXPECT_EQ(Plain(innermost, count, elements, images), plain);
      for (size_t i = 0; i < innermost.size(); ++i) {
        if (i % images < count) continue;
        EXPECT_EQ(innermost.data()[i], 0.0f);
      }
    }
  }
}

}  // namespace
}  // namespace slipstream
