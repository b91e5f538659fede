#include "worker/data/synthetic.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace slipstream {
namespace {

constexpr ExampleShape kGrey = {.channels = 1, .height = 28, .width = 28};

std::vector<uint8_t> Image(const RawExamples& examples, size_t index) {
  const uint8_t* const begin = examples.pixels.Row(0) + index * 784;
  return {begin, begin + 784};
}

TEST(SyntheticTest, HasTheShapeAndCountsAskedFor) {
  const RawSplits splits = GenerateSynthetic(kGrey, 1, 130, 100).value();

  EXPECT_EQ(splits.train.shape, kGrey);
  EXPECT_EQ(splits.test.shape, kGrey);
  EXPECT_EQ(splits.train.labels.size(), 130u);
  EXPECT_EQ(splits.train.pixels.size(), 130u * 784);
  EXPECT_EQ(splits.test.labels.size(), 100u);
}

// A net's first layers see strokes alike at any size.
TEST(SyntheticTest, OtherShapesShowTheSameDigitsStretched) {
  const ExampleShape wide = {.channels = 3, .height = 56, .width = 84};
  const RawSplits small = GenerateSynthetic(kGrey, 1, 20, 1).value();

  const RawSplits large = GenerateSynthetic(wide, 1, 20, 1).value();

  ASSERT_EQ(large.train.pixels.size(), 20 * wide.elements());
  const uint8_t* const small_pixels = small.train.pixels.Row(0);
  const uint8_t* const large_pixels = large.train.pixels.Row(0);
  EXPECT_EQ(large.train.labels, small.train.labels);
  for (size_t i = 0; i < 20; ++i) {
    for (size_t channel = 0; channel < 3; ++channel) {
      double error = 0;
      for (size_t y = 0; y < 28; ++y) {
        for (size_t x = 0; x < 28; ++x) {
          const size_t at = i * wide.elements() + (channel * 56 + 2 * y) * 84 + 3 * x + 1;
          const double there = large_pixels[at];
          const double here = small_pixels[(i * 28 + y) * 28 + x];
          error += std::abs(there - here);
        }
      }
      // Noise and paper differ by some 30 of 255 on average, and strokes by more at their edges.
      EXPECT_LT(error / 784, 60) << "example " << i << " channel " << channel;
    }
  }
}

TEST(SyntheticTest, LabelsAreBalanced) {
  const RawSplits splits = GenerateSynthetic(kGrey, 1, 1000, 100).value();

  for (uint8_t digit = 0; digit < 10; ++digit) {
    EXPECT_EQ(std::count(splits.train.labels.begin(), splits.train.labels.end(), digit), 100);
    EXPECT_EQ(std::count(splits.test.labels.begin(), splits.test.labels.end(), digit), 10);
  }
}

TEST(SyntheticTest, AnExampleDependsOnSeedSplitAndIndexAlone) {
  const RawSplits few = GenerateSynthetic(kGrey, 7, 100, 100).value();
  const RawSplits more = GenerateSynthetic(kGrey, 7, 200, 150).value();

  for (size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(Image(few.train, i), Image(more.train, i));
    ASSERT_EQ(Image(few.test, i), Image(more.test, i));
  }
}

TEST(SyntheticTest, NoTwoExamplesAreEqualAcrossSplitsAndSeeds) {
  std::set<std::vector<uint8_t>> images;
  for (const uint64_t seed : {1, 2}) {
    const RawSplits splits = GenerateSynthetic(kGrey, seed, 500, 500).value();
    for (size_t i = 0; i < 500; ++i) {
      images.insert(Image(splits.train, i));
      images.insert(Image(splits.test, i));
    }
  }

  EXPECT_EQ(images.size(), 2000u);
}

TEST(SyntheticTest, IsTheSameBytesOnEveryMachine) {
  const RawSplits splits = GenerateSynthetic(kGrey, 1, 2000, 500).value();

  EXPECT_EQ(XXH64(splits.train.pixels.Row(0), splits.train.pixels.size(), 0), 0x904afcdad145d550u);
  EXPECT_EQ(XXH64(splits.test.pixels.Row(0), splits.test.pixels.size(), 0), 0xd327a39a0e75582cu);
}

/// Returns the share of test images whose nearest class mean of the training set is that of their
/// class.
double NearestMeanAccuracy(const RawSplits& splits) {
  std::vector<std::vector<double>> means(10, std::vector<double>(784));
  const size_t count = splits.train.labels.size();
  for (size_t i = 0; i < count; ++i) {
    const std::vector<uint8_t> image = Image(splits.train, i);
    for (size_t p = 0; p < 784; ++p) means[splits.train.labels[i]][p] += image[p] * 10.0 / count;
  }
  size_t right = 0;
  for (size_t i = 0; i < splits.test.labels.size(); ++i) {
    const std::vector<uint8_t> image = Image(splits.test, i);
    std::vector<double> distances(10);
    for (size_t digit = 0; digit < 10; ++digit) {
      for (size_t p = 0; p < 784; ++p) {
        distances[digit] += (image[p] - means[digit][p]) * (image[p] - means[digit][p]);
      }
    }
    const auto nearest = std::min_element(distances.begin(), distances.end());
    right += nearest - distances.begin() == splits.test.labels[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(splits.test.labels.size());
}

TEST(SyntheticTest, DigitsCarryTheirClassButAreNotToldApartByTheirMeans) {
  const double accuracy = NearestMeanAccuracy(GenerateSynthetic(kGrey, 1, 4000, 1000).value());

  EXPECT_GT(accuracy, 0.25);
  EXPECT_LT(accuracy, 0.75);
}

}  // namespace
}  // namespace slipstream
