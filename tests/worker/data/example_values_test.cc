#include "worker/data/example_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "tests/support/example_values.h"
#include "tests/worker/data/temp_directory.h"
#include "worker/data/load_data.h"

namespace slipstream {
namespace {

Bytes RandomBytes(size_t count) {
  RandomStream random(count, 0);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Below(256));
  return bytes;
}

/// Expects the same values whichever pieces they are read in.
void ExpectValues(const ExampleValues& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  ASSERT_EQ(values.All(), expected);
  RandomStream random(1, 1);
  for (int i = 0; i < 100; ++i) {
    const size_t begin = random.Below(static_cast<uint32_t>(expected.size()));
    std::vector<float> piece(random.Below(static_cast<uint32_t>(expected.size() - begin)) + 1);
    values.Read(begin, piece);
    ASSERT_EQ(std::memcmp(piece.data(), &expected[begin], piece.size() * sizeof(float)), 0);
  }
}

TEST(ExampleValuesTest, AreThoseOfAnArray) {
  const std::vector<float> values = {1, -2, 3.5f, 0};

  ExpectValues(ExampleValues(values), values);
  EXPECT_EQ(ExampleValues().size(), 0u);
  EXPECT_TRUE(ExampleValues().All().empty());
}

TEST(ExampleValuesTest, BehindAHeaderOfAnyLengthAreThoseOfAnArray) {
  const std::vector<float> values = {1, -2, 3.5f, 0, 7};
  for (const size_t header : {0, 1, 2, 3, 4, 10}) {
    Bytes bytes(header + values.size() * sizeof(float));
    std::memcpy(bytes.data() + header, values.data(), values.size() * sizeof(float));

    ExpectValues(ExampleValues(SharedBytes(bytes), header), values);
  }
}

// Two pieces of three rows, each behind a byte that is no value.
TEST(ExampleValuesTest, OfRowsTakeTheScaleOfTheirPart) {
  const std::vector<ByteScale> scales = {{255, 0.4914f, 0.247f}, {1, 120.7f, 1}, {}};
  const Bytes one = RandomBytes(3 * 13);
  const Bytes two = RandomBytes(3 * 13 + 1);
  std::vector<float> expected;
  for (const Bytes& piece : {one, two}) {
    for (size_t i = 0; i < 3 * 13; ++i) {
      if (i % 13 == 0) continue;
      const ByteScale& scale = scales[(i % 13 - 1) / 4];
      expected.push_back((static_cast<float>(piece[i]) / scale.divisor - scale.mean) /
                         scale.deviation);
    }
  }

  ExpectValues(ExampleValues({.pieces = {SharedBytes(one), SharedBytes(two)},
                              .begin = 1,
                              .stride = 13,
                              .row_bytes = 12,
                              .rows = 3},
                             scales),
               expected);
}

struct Pixels {
  DataSpec::Pixels pixels;
  float (*value)(uint8_t pixel, float mean, float deviation);
};

// As they are defined, one pixel at a time.
constexpr Pixels kPixels[] = {
    {DataSpec::Pixels::kStandardised,
     [](uint8_t pixel, float mean, float deviation) {
       return (static_cast<float>(pixel) / 255.0f - mean) / deviation;
     }},
    {DataSpec::Pixels::kMeanSubtracted,
     [](uint8_t pixel, float mean, float) { return static_cast<float>(pixel) - 255.0f * mean; }},
    {DataSpec::Pixels::kRaw,
     [](uint8_t pixel, float, float) { return static_cast<float>(pixel); }}};

// Images of 16 × 16 have every pixel once. A net's weights must not depend on where and how pixels
// are made numbers, so all bits are compared.
TEST(ExampleValuesTest, OfImageFilesAreEveryPixelsValueToTheBit) {
  const TempDirectory directory;
  Bytes images = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 16, 0, 0, 0, 16};
  for (int i = 0; i < 512; ++i) images.push_back(static_cast<uint8_t>(i * 7));
  for (const std::string split : {"train", "t10k"}) {
    directory.Write(split + "-images-idx3-ubyte", images);
    directory.Write(split + "-labels-idx1-ubyte", Bytes{0, 0, 8, 1, 0, 0, 0, 2, 3, 9});
  }
  for (const Pixels& pixels : kPixels) {
    const DataSpec spec = {
        .format = DataSpec::Format::kIdx, .path = directory.path(), .pixels = pixels.pixels};
    const absl::StatusOr<DataSplits> data = LoadData(spec, {}, 1);
    ASSERT_TRUE(data.ok()) << data.status();
    std::vector<float> expected;
    for (size_t i = 16; i < images.size(); ++i) {
      expected.push_back(pixels.value(images[i], 0.2860f, 0.3530f));
    }

    ExpectValues(data->train.examples, expected);
    ExpectValues(data->test.examples, expected);
  }
}

}  // namespace
}  // namespace slipstream
