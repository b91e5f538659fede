#include "common/model_file/weights_digest.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

TEST(WeightsDigestTest, IsTheSha256OfTheLittleEndianBytes) {
  // The digest is that of: printf '\x00\x00\x80\x3f\x00\x00\x00\xc0' | sha256sum
  const std::vector<float> weights = {1.0f, -2.0f};

  EXPECT_EQ(WeightsSha256(weights),
            "ee4ac73c2bd27756ab82780f27c73a7bc4d3f0bb6acb37e008bc27eccd7e588b");
  EXPECT_EQ(WeightsSha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace slipstream
