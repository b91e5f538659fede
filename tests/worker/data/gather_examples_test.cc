#include "worker/data/gather_examples.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace slipstream {
namespace {

constexpr uint32_t kExamples = 50;
constexpr uint32_t kOutputs = 3;

Dataset Numbered(bool is_labelled) {
  Dataset data;
  data.shape = {.channels = 1, .height = 2, .width = 5};
  data.outputs = kOutputs;
  std::vector<float> values(kExamples * data.shape.elements());
  std::iota(values.begin(), values.end(), 0.0f);
  data.examples = ExampleValues(std::move(values));
  if (is_labelled) {
    for (uint32_t i = 0; i < kExamples; ++i) data.labels.push_back(i % kOutputs);
  } else {
    data.targets.resize(kExamples * kOutputs);
    std::iota(data.targets.begin(), data.targets.end(), 1000.0f);
  }
  return data;
}

// The parameter is the number of threads.
class GatherExamplesTest : public testing::TestWithParam<size_t> {};

TEST_P(GatherExamplesTest, EachExampleComesWithItsAnswer) {
  ExampleGatherer gatherer;
  for (const bool is_labelled : {true, false}) {
    const Dataset data = Numbered(is_labelled);
    for (const std::vector<uint32_t>& indices : std::vector<std::vector<uint32_t>>{
             {}, {7}, {3, 3, 49}, {49, 0, 12, 31, 8, 40, 1, 2, 22, 13, 5}}) {
      std::vector<float> examples(indices.size() * data.shape.elements());
      std::vector<uint32_t> labels(is_labelled ? indices.size() : 0);
      std::vector<float> targets(is_labelled ? 0 : indices.size() * kOutputs);

      gatherer.Gather(data, indices, {examples, labels, targets}, GetParam());

      for (size_t i = 0; i < indices.size(); ++i) {
        const size_t elements = data.shape.elements();
        EXPECT_EQ(examples[i * elements], static_cast<float>(indices[i] * elements));
        EXPECT_EQ(examples[i * elements + elements - 1], examples[i * elements] + 9);
        if (is_labelled) {
          EXPECT_EQ(labels[i], indices[i] % kOutputs);
        } else {
          EXPECT_EQ(targets[i * kOutputs + 2], static_cast<float>(1002 + indices[i] * kOutputs));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, GatherExamplesTest, testing::Values(1, 2, 3, 4, 20));

TEST(ExampleGathererTest, MayTakeMoreThreadsOrFewerThanBefore) {
  const Dataset data = Numbered(true);
  std::vector<uint32_t> indices(kExamples);
  std::iota(indices.begin(), indices.end(), 0u);
  ExampleGatherer gatherer;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> examples(data.examples.size());
    std::vector<uint32_t> labels(kExamples);

    gatherer.Gather(data, indices, {examples, labels, {}}, static_cast<size_t>(round % 7 + 1));

    ASSERT_EQ(examples, data.examples.All()) << "round " << round;
    ASSERT_EQ(labels, data.labels);
  }
}

TEST(GatherThreadsTest, SmallBatchesTakeOne) {
  EXPECT_EQ(GatherThreads(0), 1u);
  EXPECT_EQ(GatherThreads(400'000), 1u);
  EXPECT_GE(GatherThreads(size_t{1} << 30), 1u);
  EXPECT_LE(GatherThreads(size_t{1} << 30), 8u);
}

}  // namespace
}  // namespace slipstream
