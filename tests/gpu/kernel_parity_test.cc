#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "tests/gpu/kernel_fixture.h"
#include "worker/compute/cpu/dropout.h"
#include "worker/compute/cpu/losses.h"
#include "worker/compute/cpu/plain_image.h"
#include "worker/compute/cpu/plain_lrn.h"
#include "worker/compute/cpu/plain_vector.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/gather_kernels.h"
#include "worker/compute/cuda/loss_kernels.h"
#include "worker/compute/cuda/lrn_kernels.h"
#include "worker/compute/cuda/matmul.h"
#include "worker/compute/cuda/pool_kernels.h"
#include "worker/compute/cuda/vector_kernels.h"

namespace slipstream::cuda {
namespace {

// Sizes around the size of a block, and one that is larger than a grid.
constexpr size_t kSizes[] = {0, 1, 31, 33, 255, 256, 257, 1'200'000};

TEST_F(KernelTest, Activations) {
  for (const size_t size : kSizes) {
    const std::vector<float> values = Values(size, 1);
    const std::vector<float> gradients = Values(size, 2);
    const DeviceArray<float> input = OnDevice(values);
    const DeviceArray<float> gradient = OnDevice(gradients);
    const DeviceArray<float> output = NewArray<float>(size);
    const DeviceArray<float> input_gradient = NewArray<float>(size);
    std::vector<float> expected(size);
    std::vector<float> expected_gradient(size);

    plain::Relu(values, expected);
    plain::ReluInputGradient(expected, gradients, expected_gradient);
    ASSERT_TRUE(Activate(stream(), Activation::kRelu, size, input.data(), output.data()).ok());
    ASSERT_TRUE(ActivationInputGradient(stream(), Activation::kRelu, size, output.data(),
                                        gradient.data(), input_gradient.data())
                    .ok());
    EXPECT_EQ(OnHost(output), expected);
    EXPECT_EQ(OnHost(input_gradient), expected_gradient);

    plain::Tanh(values, expected);
    plain::TanhInputGradient(expected, gradients, expected_gradient);
    ASSERT_TRUE(Activate(stream(), Activation::kTanh, size, input.data(), output.data()).ok());
    ASSERT_TRUE(ActivationInputGradient(stream(), Activation::kTanh, size, output.data(),
                                        gradient.data(), input_gradient.data())
                    .ok());
    // CUDA's tanhf has an error of at most 2 units in the last place.
    ExpectNear(OnHost(output), expected, 3e-7f);
    ExpectNear(OnHost(input_gradient), expected_gradient, 3e-6f);
  }
}

TEST_F(KernelTest, RowsOfATable) {
  constexpr uint32_t kRows = 300;
  constexpr uint32_t kAnswers = 3;
  for (const uint32_t inputs : {1u, 255u, 256u, 257u, 4000u}) {
    const std::vector<float> examples = Values(size_t{kRows} * inputs, 1);
    const std::vector<float> answers = Values(size_t{kRows} * kAnswers, 2);
    const DeviceArray<uint32_t> example_table = OnDevice(WordsOf(examples));
    const DeviceArray<uint32_t> answer_table = OnDevice(WordsOf(answers));
    for (const uint32_t count : {1u, 255u, 256u, 257u, 3000u}) {
      RandomStream random(count, inputs);
      std::vector<uint32_t> rows(count);
      for (uint32_t& row : rows) row = random.Below(kRows);
      const DeviceArray<uint32_t> taken = OnDevice(rows);
      const DeviceArray<uint32_t> got_examples = NewArray<uint32_t>(size_t{count} * inputs);
      const DeviceArray<uint32_t> got_answers = NewArray<uint32_t>(size_t{count} * kAnswers);

      ASSERT_TRUE(GatherRows(stream(), taken.data(), count,
                             {example_table.data(), got_examples.data(), inputs},
                             {answer_table.data(), got_answers.data(), kAnswers})
                      .ok());
      EXPECT_EQ(OnHost(got_examples), WordsOf(RowsOf(examples, rows, inputs)));
      EXPECT_EQ(OnHost(got_answers), WordsOf(RowsOf(answers, rows, kAnswers)));
    }
  }
}

TEST_F(KernelTest, BiasOfDenseLayersAndOfImages) {
  for (const auto& [rows, channels, plane] : {std::tuple<size_t, uint32_t, uint32_t>{0, 10, 1},
                                              {1, 1, 1},
                                              {255, 10, 1},
                                              {256, 10, 1},
                                              {257, 10, 1},
                                              {3, 33, 49},
                                              {64, 6, 576}}) {
    std::vector<float> values = Values(rows * channels * plane, 3);
    const std::vector<float> biases = Values(channels, 4);
    const DeviceArray<float> array = OnDevice(values);
    const DeviceArray<float> bias = OnDevice(biases);

    ASSERT_TRUE(
        AddBias(stream(), Activation::kRelu, rows, channels, plane, bias.data(), array.data())
            .ok());

    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::max(values[i] + biases[i / plane % channels], 0.0f);
    }
    EXPECT_EQ(OnHost(array), values);
  }
}

class ColumnSumsTest : public KernelTest {
 protected:
  void ExpectSums(size_t rows, uint32_t columns) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    const std::vector<float> values = Values(rows * columns, 5);
    std::vector<float> expected(columns);
    std::vector<float> unused(columns);
    const std::vector<float> no_input(rows);
    plain::DenseParameterGradients({1, columns}, static_cast<uint32_t>(rows), no_input.data(),
                                   values.data(), unused.data(), expected.data());
    const DeviceArray<float> array = OnDevice(values);
    const DeviceArray<float> sums = NewArray<float>(columns);

    ASSERT_TRUE(cuda::ColumnSums(stream(), rows, columns, array.data(), sums.data()).ok());

    // The error comes from 1024 additions of values below 3 in another order.
    ExpectNear(OnHost(sums), expected, 2e-3f);
  }
};

TEST_F(ColumnSumsTest, OfBatches) {
  for (const size_t rows : {0, 1, 31, 32, 33, 255, 256, 257, 1024}) {
    for (const uint32_t columns : {1u, 10u, 32u, 33u, 500u}) ExpectSums(rows, columns);
  }
}

TEST_F(ColumnSumsTest, OfMoreColumnsThanAGridTakesAtOnce) { ExpectSums(33, 135'000); }

TEST_F(KernelTest, SumsOfChannels) {
  // Sums of small integers are exact in any order.
  const auto expect_sums = [this](size_t rows, uint32_t channels, uint32_t plane) {
    SCOPED_TRACE(testing::Message() << rows << " x " << channels << " x " << plane);
    std::vector<float> values = Values(rows * channels * plane, 5);
    std::vector<float> expected(channels);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::round(values[i]);
      expected[i / plane % channels] += values[i];
    }
    const DeviceArray<float> array = OnDevice(values);
    const DeviceArray<float> partial =
        NewArray<float>(std::max<size_t>(channels, kChannelSumsBlocks));
    const DeviceArray<float> sums = NewArray<float>(channels);
    EXPECT_TRUE(
        ChannelSums(stream(), rows, channels, plane, array.data(), partial.data(), sums.data())
            .ok());
    EXPECT_EQ(OnHost(sums), expected);
  };
  for (const size_t rows : {0, 1, 7, 8, 9, 300}) {
    for (const uint32_t plane : {1u, 31u, 100u}) {
      for (const uint32_t channels : {1u, 6u, 64u}) expect_sums(rows, channels, plane);
    }
  }
  expect_sums(9, 1500, 31);  // More channels than blocks.
}

TEST_F(KernelTest, Dropout) {
  constexpr float kRate = 0.4f;
  const std::vector<PassInputs> inputs = {{.batch_index = 9, .pass = 1}};
  const DeviceArray<PassInputs> pass = OnDevice(inputs);
  for (const size_t size : kSizes) {
    const std::vector<float> values = Values(size, 6);
    std::vector<float> expected(size);
    slipstream::Dropout({.seed = 5, .batch_index = 9, .layer = 3}, kRate, values, expected);
    const DeviceArray<float> input = OnDevice(values);
    const DeviceArray<float> output = NewArray<float>(size);

    ASSERT_TRUE(cuda::Dropout(stream(), DropoutDraws(5, 3, kRate), pass.data(), 0, size,
                              input.data(), output.data())
                    .ok());

    EXPECT_EQ(OnHost(output), expected);
  }
}

// The parts are such as those of several devices that share a mini-batch.
TEST_F(KernelTest, DropoutOfPartsIsThatOfTheWhole) {
  constexpr float kRate = 0.4f;
  constexpr size_t kSize = 1000;
  const std::vector<PassInputs> inputs = {{.batch_index = 9, .pass = 1}};
  const DeviceArray<PassInputs> pass = OnDevice(inputs);
  const std::vector<float> values = Values(kSize, 6);
  std::vector<float> expected(kSize);
  slipstream::Dropout({.seed = 5, .batch_index = 9, .layer = 3}, kRate, values, expected);
  const DeviceArray<float> input = OnDevice(values);
  const DeviceArray<float> output = NewArray<float>(kSize);

  size_t begin = 0;
  for (const size_t end : {0, 1, 2, 6, 8, 257, 259, 999, 1000}) {
    ASSERT_TRUE(cuda::Dropout(stream(), DropoutDraws(5, 3, kRate), pass.data(), begin, end - begin,
                              input.data() + begin, output.data() + begin)
                    .ok());
    begin = end;
  }

  EXPECT_EQ(OnHost(output), expected);
}

TEST_F(KernelTest, Pools) {
  const ExampleShape in = {3, 9, 11};
  for (const PoolLayer::Kind kind : {PoolLayer::Kind::kMax, PoolLayer::Kind::kAverage}) {
    const PoolShape shape = {kind, in, {3, 4, 5}, 3, 2};
    for (const uint32_t count : {0u, 1u, 255u, 256u, 257u}) {
      const std::vector<float> values = Values(count * in.elements(), 7);
      const std::vector<float> gradients = Values(count * shape.output.elements(), 8);
      std::vector<float> expected(gradients.size());
      std::vector<float> expected_gradient(values.size());
      plain::PoolForward(shape, count, values.data(), expected.data());
      plain::PoolInputGradient(shape, count, values.data(), gradients.data(),
                               expected_gradient.data());
      const DeviceArray<float> input = OnDevice(values);
      const DeviceArray<float> gradient = OnDevice(gradients);
      const DeviceArray<float> output = NewArray<float>(expected.size());
      const DeviceArray<float> input_gradient = NewArray<float>(values.size());
      const DeviceArray<uint32_t> places = NewArray<uint32_t>(expected.size());

      ASSERT_TRUE(
          PoolForward(stream(), shape, count, input.data(), output.data(), places.data()).ok());
      ASSERT_TRUE(cuda::PoolInputGradient(stream(), shape, count, places.data(), gradient.data(),
                                          input_gradient.data())
                      .ok());

      EXPECT_EQ(OnHost(output), expected);
      EXPECT_EQ(OnHost(input_gradient), expected_gradient);
    }
  }
}

TEST_F(KernelTest, Normalisations) {
  for (const LrnShape& shape : {LrnShape{{3, 9, 11}, LrnLayer::Region::kWithin, 3, 0.5f, 0.75f},
                                LrnShape{{9, 3, 11}, LrnLayer::Region::kAcross, 5, 0.5f, 0.6f}}) {
    for (const uint32_t count : {0u, 1u, 257u}) {
      const std::vector<float> values = Values(count * shape.image.elements(), 7);
      const std::vector<float> gradients = Values(values.size(), 8);
      std::vector<float> expected(values.size());
      std::vector<float> expected_gradient(values.size());
      plain::LrnForward(shape, count, values.data(), expected.data());
      plain::LrnInputGradient(shape, count, values.data(), gradients.data(),
                              expected_gradient.data());
      const DeviceArray<float> input = OnDevice(values);
      const DeviceArray<float> gradient = OnDevice(gradients);
      const DeviceArray<float> output = NewArray<float>(values.size());
      const DeviceArray<float> scales = NewArray<float>(values.size());
      const DeviceArray<float> input_gradient = NewArray<float>(values.size());

      ASSERT_TRUE(
          LrnForward(stream(), shape, count, input.data(), output.data(), scales.data()).ok());
      ASSERT_TRUE(LrnInputGradient(stream(), shape, count,
                                   {input.data(), output.data(), scales.data(), gradient.data()},
                                   input_gradient.data())
                      .ok());

      // Sums of up to 9 products in another order, and powers of another library.
      ExpectNear(OnHost(output), expected, 2e-6f);
      ExpectNear(OnHost(input_gradient), expected_gradient, 2e-6f);
    }
  }
}

TEST_F(KernelTest, SoftmaxCrossEntropyAndItsSum) {
  auto totals = PinnedArray<PassOutputs>::Allocate(1, "a test");
  ASSERT_TRUE(totals.ok()) << totals.status();
  for (const uint32_t count : {1u, 255u, 256u, 257u, 2000u}) {
    for (const uint32_t classes : {2u, 10u, 33u, 1000u}) {
      const std::vector<float> values = Values(size_t{count} * classes, 9);
      std::vector<uint32_t> classes_of(count);
      for (uint32_t i = 0; i < count; ++i) classes_of[i] = i % classes;
      std::vector<float> expected(values.size());
      const StepResult whole =
          slipstream::SoftmaxCrossEntropy(values, classes_of, classes, expected);
      const DeviceArray<float> logits = OnDevice(values);
      const DeviceArray<uint32_t> labels = OnDevice(classes_of);
      const DeviceArray<RowLoss> losses = NewArray<RowLoss>(count);
      const DeviceArray<float> gradient = NewArray<float>(values.size());

      ASSERT_TRUE(cuda::SoftmaxCrossEntropy(stream(), {count, classes, count}, logits.data(),
                                            labels.data(), losses.data(), gradient.data())
                      .ok());
      ASSERT_TRUE(SumLosses(stream(), count, losses.data(), totals->data()).ok());

      // The error comes from a sum of up to 1000 exponentials in another order. Gradients are below
      // 1 / count.
      ExpectNear(OnHost(gradient), expected, 2e-6f / static_cast<float>(count));
      EXPECT_NEAR(totals->data()->loss_sum / count, whole.loss, 1e-5);
      EXPECT_EQ(totals->data()->correct, whole.correct);
    }
  }
}

TEST_F(KernelTest, MeanSquaredError) {
  auto totals = PinnedArray<PassOutputs>::Allocate(1, "a test");
  ASSERT_TRUE(totals.ok()) << totals.status();
  for (const uint32_t count : {1u, 255u, 256u, 257u}) {
    for (const uint32_t outputs : {1u, 10u, 100u}) {
      const std::vector<float> values = Values(size_t{count} * outputs, 10);
      const std::vector<float> wanted = Values(size_t{count} * outputs, 11);
      std::vector<float> expected(values.size());
      const StepResult whole = slipstream::MeanSquaredError(values, wanted, expected);
      const DeviceArray<float> results = OnDevice(values);
      const DeviceArray<float> targets = OnDevice(wanted);
      const DeviceArray<RowLoss> losses = NewArray<RowLoss>(count);
      const DeviceArray<float> gradient = NewArray<float>(values.size());

      ASSERT_TRUE(cuda::MeanSquaredError(stream(), {count, outputs, count}, results.data(),
                                         targets.data(), losses.data(), gradient.data())
                      .ok());
      ASSERT_TRUE(SumLosses(stream(), count, losses.data(), totals->data()).ok());

      EXPECT_EQ(OnHost(gradient), expected);
      EXPECT_NEAR(totals->data()->loss_sum / static_cast<double>(values.size()), whole.loss, 1e-6);
    }
  }
}

// The parts are such as those of several devices that share a mini-batch. The gradients are those
// of the mean over the whole mini-batch.
TEST_F(KernelTest, LossesOfPartsAreThoseOfTheWhole) {
  constexpr uint32_t kCount = 7;
  constexpr uint32_t kOutputs = 10;
  const std::vector<float> values = Values(kCount * kOutputs, 9);
  const std::vector<float> wanted = Values(kCount * kOutputs, 11);
  std::vector<uint32_t> classes(kCount);
  for (uint32_t i = 0; i < kCount; ++i) classes[i] = i % kOutputs;
  const DeviceArray<float> outputs = OnDevice(values);
  const DeviceArray<float> targets = OnDevice(wanted);
  const DeviceArray<uint32_t> labels = OnDevice(classes);
  const DeviceArray<RowLoss> losses = NewArray<RowLoss>(kCount);
  const DeviceArray<float> whole = NewArray<float>(values.size());
  const DeviceArray<float> parts = NewArray<float>(values.size());
  const auto expect_equal = [&](auto compute) {
    ASSERT_TRUE(compute(0, kCount, whole.data()).ok());
    ASSERT_TRUE(compute(0, 2, parts.data()).ok());
    ASSERT_TRUE(compute(2, kCount - 2, parts.data()).ok());
    EXPECT_EQ(OnHost(parts), OnHost(whole));
  };

  expect_equal([&](uint32_t begin, uint32_t count, float* gradient) {
    const size_t at = size_t{begin} * kOutputs;
    return cuda::SoftmaxCrossEntropy(stream(), {count, kOutputs, kCount}, outputs.data() + at,
                                     labels.data() + begin, losses.data(), gradient + at);
  });
  expect_equal([&](uint32_t begin, uint32_t count, float* gradient) {
    const size_t at = size_t{begin} * kOutputs;
    return cuda::MeanSquaredError(stream(), {count, kOutputs, kCount}, outputs.data() + at,
                                  targets.data() + at, losses.data(), gradient + at);
  });
}

TEST_F(KernelTest, Bf16IsRoundedToNearestEven) {
  const std::vector<float> values = {1.0f, 1.00390625f, 1.01171875f, -2.5f, 0.0f, 1e-40f, 3e38f};
  const DeviceArray<float> input = OnDevice(values);
  const DeviceArray<__nv_bfloat16> output = NewArray<__nv_bfloat16>(values.size());

  ASSERT_TRUE(ToBf16(stream(), values.size(), input.data(), output.data()).ok());

  const std::vector<__nv_bfloat16> rounded = OnHost(output);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof(bits));
    const auto nearest = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    uint16_t actual = 0;
    std::memcpy(&actual, &rounded[i], sizeof(actual));
    EXPECT_EQ(actual, nearest) << values[i];
  }
}

/// The three products of a dense layer, with operands of all shapes that occur.
class ProductTest : public KernelTest {
 protected:
  // The error comes from 784 products of values below 9 in another order.
  static constexpr float kTolerance = 2e-3f;

  void ExpectProduct(const Matmul::Shape& shape, const std::vector<float>& left,
                     const std::vector<float>& right, const std::vector<float>& expected,
                     Matmul::Epilogue epilogue = Matmul::Epilogue::kNone,
                     const std::vector<float>& bias = {}) {
    SCOPED_TRACE(testing::Message()
                 << shape.rows << " x " << shape.columns << " of " << shape.inner);
    auto product = Matmul::Prepare(*context_, shape, Precision::kFp32, epilogue);
    // Without this epilogue the layer adds the bias itself.
    if (epilogue != Matmul::Epilogue::kNone && absl::IsUnimplemented(product.status())) return;
    ASSERT_TRUE(product.ok()) << product.status();
    const auto workspace = NewArray<std::byte>(Matmul::kWorkspaceBytes);
    const DeviceArray<float> left_array = OnDevice(left);
    const DeviceArray<float> right_array = OnDevice(right);
    const DeviceArray<float> biases = OnDevice(bias);
    const DeviceArray<float> result = NewArray<float>(expected.size());

    const absl::Status run =
        product->Run(left_array.data(), right_array.data(), bias.empty() ? nullptr : biases.data(),
                     workspace.data(), result.data());

    ASSERT_TRUE(run.ok()) << run;
    ExpectNear(OnHost(result), expected, kTolerance);
  }
};

TEST_F(ProductTest, OfDenseLayers) {
  for (const auto& [inputs, units] : {std::pair{1u, 1u}, {33u, 10u}, {784u, 256u}, {257u, 255u}}) {
    for (const uint32_t count : {1u, 64u, 255u, 256u, 257u}) {
      const DenseShape shape = {inputs, units};
      const std::vector<float> input = Values(size_t{count} * inputs, 12);
      const std::vector<float> weight = Values(size_t{units} * inputs, 13);
      const std::vector<float> bias = Values(units, 14);
      const std::vector<float> gradient = Values(size_t{count} * units, 15);
      std::vector<float> output(gradient.size());
      std::vector<float> weight_gradient(weight.size());
      std::vector<float> bias_gradient(units);
      std::vector<float> input_gradient(input.size());
      plain::DenseForward(shape, count, input.data(), weight.data(), bias.data(), output.data());
      plain::DenseParameterGradients(shape, count, input.data(), gradient.data(),
                                     weight_gradient.data(), bias_gradient.data());
      plain::DenseInputGradient(shape, count, weight.data(), gradient.data(),
                                input_gradient.data());

      const Matmul::Shape forward = {
          .rows = count, .columns = units, .inner = inputs, .right_is_transposed = true};
      ExpectProduct(forward, input, weight, output, Matmul::Epilogue::kBias, bias);
      std::vector<float> positive(output.size());
      plain::Relu(output, positive);
      ExpectProduct(forward, input, weight, positive, Matmul::Epilogue::kBiasRelu, bias);
      ExpectProduct({.rows = units, .columns = inputs, .inner = count, .left_is_transposed = true},
                    gradient, input, weight_gradient);
      ExpectProduct({.rows = count, .columns = inputs, .inner = units}, gradient, weight,
                    input_gradient);
    }
  }
}

}  // namespace
}  // namespace slipstream::cuda
