#include "server/aggregator/combined_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "server/core/shard/round.h"

namespace slipstream {
namespace {

using Weighing = PolicyTraits::Weighing;

std::shared_ptr<const ReceivedValues> Piece(const std::vector<float>& values) {
  ReceivedValues::Buffer buffer = ReceivedValues::MakeBuffer(values.size());
  std::copy(values.begin(), values.end(), buffer.to.begin());
  return std::make_shared<const ReceivedValues>(std::move(buffer.values));
}

/// Returns a gradient that came in two pieces.
WeighedPayload Gradient(const std::vector<float>& values, uint32_t examples = 1, float clip = 1) {
  WeighedPayload gradient = {.payload = {}, .examples = examples, .clip = clip};
  gradient.payload.pieces.push_back(Piece({values.begin(), values.begin() + 1}));
  gradient.payload.pieces.push_back(Piece({values.begin() + 1, values.end()}));
  gradient.payload.bytes = values.size() * sizeof(float);
  return gradient;
}

std::vector<float> Combined(std::vector<WeighedPayload> gradients, Weighing weighing) {
  std::vector<float> to(3);
  CombineValues(gradients, weighing, to);
  return to;
}

template <typename... Gradients>
std::vector<WeighedPayload> All(Gradients... gradients) {
  std::vector<WeighedPayload> all;
  (all.push_back(std::move(gradients)), ...);
  return all;
}

TEST(CombinedValuesTest, AGradientThatIsAloneStaysAsItIs) {
  const std::vector<float> values = {0.1f, -1e30f, 3e-30f};

  for (const Weighing weighing : {Weighing::kEqual, Weighing::kExamples}) {
    EXPECT_EQ(Combined(All(Gradient(values, 7)), weighing), values);
  }
}

TEST(CombinedValuesTest, AllCountAlike) {
  const auto gradients = [] { return All(Gradient({1, 2, 3}, 1), Gradient({3, 6, -3}, 3)); };

  EXPECT_EQ(Combined(gradients(), Weighing::kEqual), (std::vector<float>{2, 4, 0}));
}

TEST(CombinedValuesTest, GradientsCountByTheirExamples) {
  const auto gradients = [] { return All(Gradient({1, 2, 3}, 1), Gradient({3, 6, -3}, 3)); };

  EXPECT_EQ(Combined(gradients(), Weighing::kExamples), (std::vector<float>{2.5f, 5, -1.5f}));
}

TEST(CombinedValuesTest, EachIsClippedBefore) {
  EXPECT_EQ(Combined(All(Gradient({4, 8, 12}, 1, 0.25f)), Weighing::kEqual),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(Combined(All(Gradient({4, 8, 12}, 1, 0.25f), Gradient({3, 4, 5})), Weighing::kEqual),
            (std::vector<float>{2, 3, 4}));
}

TEST(CombinedValuesTest, GradientsAreSummedInTheGivenOrder) {
  // The small number is lost unless the large ones cancel out first.
  const std::vector<float> large = {1e8f, 1e8f, 1e8f};
  const std::vector<float> opposite = {-1e8f, -1e8f, -1e8f};
  const std::vector<float> small = {3, 3, 3};

  EXPECT_EQ(Combined(All(Gradient(large), Gradient(opposite), Gradient(small)), Weighing::kEqual),
            (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(Combined(All(Gradient(small), Gradient(large), Gradient(opposite)), Weighing::kEqual),
            (std::vector<float>{0, 0, 0}));
}

TEST(CombinedValuesTest, PayloadsAreFreed) {
  std::vector<WeighedPayload> gradients = All(Gradient({1, 2, 3}), Gradient({1, 2, 3}));
  std::vector<float> to(3);

  CombineValues(gradients, Weighing::kEqual, to);

  for (const WeighedPayload& gradient : gradients) EXPECT_TRUE(gradient.payload.pieces.empty());
}

}  // namespace
}  // namespace slipstream
