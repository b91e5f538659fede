#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/base/philox.h"
#include "worker/compute/cpu/losses.h"
#include "worker/compute/cpu/plain_image.h"
#include "worker/compute/cpu/plain_lrn.h"
#include "worker/compute/cpu/plain_vector.h"
#include "worker/compute/cuda/gather_math.h"
#include "worker/compute/cuda/loss_math.h"
#include "worker/compute/cuda/lrn_math.h"
#include "worker/compute/cuda/pool_math.h"
#include "worker/compute/cuda/vector_math.h"
#include "worker/data/dataset.h"
#include "worker/data/gather_examples.h"

namespace slipstream {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Returns few different values, so that windows contain several equal maxima.
std::vector<float> CoarseValues(size_t size, uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random.Below(7)) - 3.0f;
  return values;
}

std::vector<float> Values(size_t size, uint64_t seed) {
  RandomStream random(seed, 1);
  std::vector<float> values(size);
  for (float& value : values) value = random.Uniform(-3, 3);
  return values;
}

struct PoolCase {
  uint32_t kernel, stride, in_height, in_width, out_height, out_width;
};

PoolShape ShapeOf(const PoolCase& pool, PoolLayer::Kind kind) {
  constexpr uint32_t kChannels = 3;
  return {kind,
          {kChannels, pool.in_height, pool.in_width},
          {kChannels, pool.out_height, pool.out_width},
          pool.kernel,
          pool.stride};
}

class PoolMathTest : public testing::TestWithParam<PoolCase> {};

TEST_P(PoolMathTest, EqualsTheProcessorsToTheBit) {
  constexpr uint32_t kCount = 4;
  for (const PoolLayer::Kind kind : {PoolLayer::Kind::kMax, PoolLayer::Kind::kAverage}) {
    const PoolShape shape = ShapeOf(GetParam(), kind);
    const std::vector<float> input = CoarseValues(kCount * shape.input.elements(), 1);
    const std::vector<float> gradient = Values(kCount * shape.output.elements(), 2);
    std::vector<float> output(gradient.size());
    std::vector<float> input_gradient(input.size());
    plain::PoolForward(shape, kCount, input.data(), output.data());
    plain::PoolInputGradient(shape, kCount, input.data(), gradient.data(), input_gradient.data());

    const cuda::PlaneGrid inputs(shape.input);
    const cuda::PlaneGrid outputs(shape.output);
    std::vector<uint32_t> places(output.size());
    for (size_t i = 0; i < output.size(); ++i) {
      ASSERT_EQ(cuda::Pooled(shape, outputs, input.data(), places.data(), i), output[i]) << i;
      const auto narrow = static_cast<uint32_t>(i);
      ASSERT_EQ(cuda::Pooled(shape, outputs, input.data(), nullptr, narrow), output[i]) << i;
    }
    for (size_t i = 0; i < input.size(); ++i) {
      const auto narrow = static_cast<uint32_t>(i);
      for (const float computed :
           {cuda::PoolInputGradient(shape, inputs, places.data(), gradient.data(), i),
            cuda::PoolInputGradient(shape, inputs, places.data(), gradient.data(), narrow)}) {
        ASSERT_EQ(computed, input_gradient[i]) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, PoolMathTest,
                         testing::Values(PoolCase{2, 2, 6, 8, 3, 4},      // Side by side.
                                         PoolCase{2, 2, 7, 9, 3, 4},      // Odd size.
                                         PoolCase{3, 2, 7, 9, 3, 4},      // Overlapping.
                                         PoolCase{3, 2, 32, 32, 16, 16},  // Partial at the end.
                                         PoolCase{3, 3, 7, 8, 3, 3},      // Partial, no overlap.
                                         PoolCase{2, 3, 8, 8, 3, 3},      // Gaps between.
                                         PoolCase{5, 1, 5, 6, 1, 2},      // As high as the input.
                                         PoolCase{1, 1, 3, 2, 3, 2}),
                         [](const auto& pool) {
                           return std::to_string(pool.param.kernel) + "by" +
                                  std::to_string(pool.param.stride) + "of" +
                                  std::to_string(pool.param.in_height);
                         });

class LrnMathTest : public testing::TestWithParam<LrnShape> {};

TEST_P(LrnMathTest, IsTheProcessors) {
  constexpr uint32_t kCount = 2;
  const LrnShape& shape = GetParam();
  const std::vector<float> input = Values(kCount * shape.image.elements(), 1);
  const std::vector<float> gradient = Values(input.size(), 2);
  std::vector<float> output(input.size());
  std::vector<float> input_gradient(input.size());
  plain::LrnForward(shape, kCount, input.data(), output.data());
  plain::LrnInputGradient(shape, kCount, input.data(), gradient.data(), input_gradient.data());

  const cuda::LrnWindows windows(shape);
  std::vector<float> scales(input.size());
  // Sums of up to 49 squares in another order.
  constexpr float kTolerance = 1e-5f;
  for (size_t i = 0; i < input.size(); ++i) {
    ASSERT_NEAR(cuda::LrnOutput(windows, input.data(), scales.data(), i), output[i], kTolerance);
    const auto narrow = static_cast<uint32_t>(i);
    ASSERT_NEAR(cuda::LrnOutput(windows, input.data(), nullptr, narrow), output[i], kTolerance);
  }
  for (size_t i = 0; i < input.size(); ++i) {
    const auto narrow = static_cast<uint32_t>(i);
    for (const float computed : {cuda::LrnInputGradient(windows, input.data(), output.data(),
                                                        scales.data(), gradient.data(), i),
                                 cuda::LrnInputGradient(windows, input.data(), output.data(),
                                                        scales.data(), gradient.data(), narrow)}) {
      ASSERT_NEAR(computed, input_gradient[i], kTolerance) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Windows, LrnMathTest,
    testing::Values(LrnShape{{3, 5, 6}, LrnLayer::Region::kWithin, 3, 0.5f, 0.75f},
                    LrnShape{{2, 3, 8}, LrnLayer::Region::kWithin, 7, 0.5f, 0.6f},  // Higher.
                    LrnShape{{8, 3, 2}, LrnLayer::Region::kAcross, 5, 0.5f, 0.75f},
                    LrnShape{{2, 3, 2}, LrnLayer::Region::kAcross, 5, 0.5f, 2}));  // Wider.

TEST(GatherMathTest, RowsAreTheGatherers) {
  constexpr size_t kRows = 40;
  for (const uint32_t width : {1u, 3u, 255u}) {
    Dataset table;
    table.shape = {width, 1, 1};
    table.outputs = 1;
    const std::vector<float> values = Values(kRows * width, width);
    table.examples = ExampleValues(values);
    table.labels.resize(kRows);
    std::vector<uint32_t> words(values.size());
    std::memcpy(words.data(), values.data(), words.size() * sizeof(uint32_t));
    RandomStream random(width, 2);
    std::vector<uint32_t> rows(100);
    for (uint32_t& row : rows) row = random.Below(kRows);
    std::vector<float> gathered(rows.size() * width);
    std::vector<uint32_t> labels(rows.size());
    ExampleGatherer().Gather(table, rows, {gathered, labels, {}}, 1);

    const cuda::Divisor row_words(width);
    for (size_t i = 0; i < gathered.size(); ++i) {
      const auto word = std::bit_cast<uint32_t>(gathered[i]);
      ASSERT_EQ(cuda::GatheredWord(words.data(), row_words, rows.data(), i), word) << i;
      const auto narrow = static_cast<uint32_t>(i);
      ASSERT_EQ(cuda::GatheredWord(words.data(), row_words, rows.data(), narrow), word) << i;
    }
  }
}

TEST(VectorMathTest, ActivationsAreTheProcessors) {
  std::vector<float> input = Values(1000, 3);
  input[7] = 0;
  const std::vector<float> gradient = Values(1000, 4);
  std::vector<float> output(input.size());
  std::vector<float> input_gradient(input.size());

  plain::Relu(input, output);
  plain::ReluInputGradient(output, gradient, input_gradient);
  for (size_t i = 0; i < input.size(); ++i) {
    ASSERT_EQ(cuda::Activated(Activation::kRelu, input[i]), output[i]);
    ASSERT_EQ(cuda::ActivationGradient(Activation::kRelu, output[i], gradient[i]),
              input_gradient[i]);
  }
  plain::Tanh(input, output);
  plain::TanhInputGradient(output, gradient, input_gradient);
  for (size_t i = 0; i < input.size(); ++i) {
    ASSERT_EQ(cuda::Activated(Activation::kTanh, input[i]), output[i]);
    ASSERT_EQ(cuda::ActivationGradient(Activation::kTanh, output[i], gradient[i]),
              input_gradient[i]);
  }
  EXPECT_EQ(cuda::Activated(Activation::kNone, 1.5f), 1.5f);
  EXPECT_EQ(cuda::ActivationGradient(Activation::kNone, 1.5f, 0.25f), 0.25f);
}

TEST(VectorMathTest, NoActivationHidesANan) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kTanh}) {
    EXPECT_TRUE(std::isnan(cuda::Activated(activation, kNan)));
  }
}

/// Lanes as threads: each lane reads the others' values once all lanes have written theirs.
struct Warp {
  explicit Warp(uint32_t lanes) : barrier(lanes), largest(lanes), sums(lanes) {}

  std::barrier<> barrier;
  std::vector<cuda::Largest> largest;
  std::vector<double> sums;
};

class ThreadLanes {
 public:
  ThreadLanes(Warp& warp, uint32_t index) : warp_(warp), index_(index) {}

  uint32_t index() const { return index_; }
  uint32_t count() const { return static_cast<uint32_t>(warp_.sums.size()); }

  cuda::Largest Max(const cuda::Largest& largest) const {
    warp_.largest[index_] = largest;
    warp_.barrier.arrive_and_wait();
    cuda::Largest result;
    for (const cuda::Largest& other : warp_.largest) {
      if (result.IsBelow(other)) result = other;
    }
    warp_.barrier.arrive_and_wait();
    return result;
  }

  template <typename T>
  T Sum(T value) const {
    warp_.sums[index_] = value;
    warp_.barrier.arrive_and_wait();
    T sum = 0;
    for (const double part : warp_.sums) sum += static_cast<T>(part);
    warp_.barrier.arrive_and_wait();
    return sum;
  }

 private:
  Warp& warp_;
  const uint32_t index_;
};

// Calls row(lanes) on each of `lanes` lanes at once. Returns the result of the first one.
template <typename Row>
cuda::RowLoss OnLanes(uint32_t lanes, Row row) {
  if (lanes == 1) return row(cuda::OneLane());
  Warp warp(lanes);
  std::vector<cuda::RowLoss> results(lanes);
  std::vector<std::thread> threads;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane] { results[lane] = row(ThreadLanes(warp, lane)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const cuda::RowLoss& result : results) {
    EXPECT_TRUE(result.loss == results[0].loss || std::isnan(result.loss)) << "lanes must agree";
    EXPECT_EQ(result.correct, results[0].correct);
  }
  return results[0];
}

class LossMathTest : public testing::TestWithParam<uint32_t> {};

TEST_P(LossMathTest, SoftmaxIsTheProcessors) {
  constexpr size_t kCount = 9;
  for (const uint32_t classes : {2u, 3u, 10u, 33u}) {
    SCOPED_TRACE(classes);
    // The logits have several equal maxima in a row; the first one counts.
    const std::vector<float> logits = CoarseValues(kCount * classes, classes);
    std::vector<uint32_t> labels(kCount);
    for (size_t i = 0; i < kCount; ++i) labels[i] = static_cast<uint32_t>(i) % classes;
    std::vector<float> expected(logits.size());
    const StepResult whole = SoftmaxCrossEntropy(logits, labels, classes, expected);
    std::vector<float> gradient(logits.size());
    cuda::RowLoss sum;
    for (size_t i = 0; i < kCount; ++i) {
      const cuda::RowLoss row = OnLanes(GetParam(), [&](const auto& lanes) {
        return cuda::SoftmaxRow(lanes, logits.data() + i * classes, classes, labels[i],
                                1.0f / kCount, gradient.data() + i * classes);
      });
      sum.loss += row.loss;
      sum.correct += row.correct;
    }

    EXPECT_NEAR(sum.loss / kCount, whole.loss, 1e-6);
    EXPECT_EQ(sum.correct, whole.correct);
    // The error comes from a sum of up to 33 exponentials in another order, and two roundings.
    for (size_t i = 0; i < gradient.size(); ++i) ASSERT_NEAR(gradient[i], expected[i], 1e-7) << i;
  }
}

TEST_P(LossMathTest, SquaredErrorIsTheProcessors) {
  constexpr size_t kCount = 5;
  for (const uint32_t outputs : {1u, 3u, 40u}) {
    SCOPED_TRACE(outputs);
    const std::vector<float> values = Values(kCount * outputs, 5);
    const std::vector<float> targets = Values(kCount * outputs, 6);
    std::vector<float> expected(values.size());
    const StepResult whole = MeanSquaredError(values, targets, expected);
    std::vector<float> gradient(values.size());
    double sum = 0;
    for (size_t i = 0; i < kCount; ++i) {
      const size_t row = i * outputs;
      sum += OnLanes(GetParam(), [&](const auto& lanes) {
               return cuda::SquaredErrorRow(lanes, values.data() + row, targets.data() + row,
                                            outputs, 2.0f / static_cast<float>(values.size()),
                                            gradient.data() + row);
             }).loss;
    }

    EXPECT_NEAR(sum / static_cast<double>(values.size()), whole.loss, 1e-6);
    EXPECT_EQ(gradient, expected);
  }
}

TEST_P(LossMathTest, WritesNoGradientWhereNoneIsWanted) {
  const std::vector<float> row = {1, 2, 3};
  const cuda::RowLoss loss = OnLanes(GetParam(), [&](const auto& lanes) {
    return cuda::SoftmaxRow(lanes, row.data(), 3, 2, 1, nullptr);
  });
  EXPECT_EQ(loss.correct, 1u);
}

TEST_P(LossMathTest, ANanIsTheLoss) {
  const std::vector<float> row = {1, kNan, 3};
  const cuda::RowLoss loss = OnLanes(GetParam(), [&](const auto& lanes) {
    return cuda::SoftmaxRow(lanes, row.data(), 3, 2, 1, nullptr);
  });
  EXPECT_TRUE(std::isnan(loss.loss));
}

INSTANTIATE_TEST_SUITE_P(Lanes, LossMathTest, testing::Values(1, 4));

}  // namespace
}  // namespace slipstream
