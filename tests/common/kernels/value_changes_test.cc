#include "common/kernels/value_changes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/philox.h"

namespace slipstream {
namespace {

std::vector<float> RandomBits(size_t count, RandomStream& random) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = std::bit_cast<float>(random.Below(1u << 31) * 2 + random.Below(2));
  }
  return values;
}

float AsBf16(float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000u);
}

/// Returns `from` with so many of a thousand values changed.
std::vector<float> Changed(const std::vector<float>& from, uint32_t per_mille, bool to_bf16,
                           RandomStream& random) {
  std::vector<float> to = from;
  for (float& value : to) {
    if (random.Below(1000) >= per_mille) continue;
    value = RandomBits(1, random).front();
    if (to_bf16) value = AsBf16(value);
  }
  return to;
}

bool AreEqual(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(ValueChangesTest, BringBackEveryBitWhateverChanges) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 5);
    constexpr size_t kSizes[] = {1, 100, kChangesBlockValues, kChangesBlockValues + 1, 200'000};
    const std::vector<float> from = RandomBits(kSizes[random.Below(5)], random);
    constexpr uint32_t kShares[] = {0, 1, 10, 600, 1000};
    const std::vector<float> to =
        Changed(from, kShares[random.Below(5)], random.Below(2) == 0, random);

    std::string blocks;
    AppendChanges(from, to, blocks);
    std::vector<float> made(to.size());

    ASSERT_TRUE(ApplyChanges(blocks, from, made));
    ASSERT_TRUE(AreEqual(made, to));
    EXPECT_LE(blocks.size(), to.size() * sizeof(float) + 4 * (to.size() / kChangesBlockValues + 1));
  }
}

TEST(ValueChangesTest, OfAHundredthOfTheValuesAreLessThanAFortiethOfTheBytes) {
  RandomStream random(1, 6);
  for (const bool are_bf16 : {false, true}) {
    std::vector<float> from = RandomBits(1'000'000, random);
    if (are_bf16) {
      for (float& value : from) value = AsBf16(value);
    }
    const std::vector<float> to = Changed(from, 10, are_bf16, random);

    std::string blocks;
    AppendChanges(from, to, blocks);

    const size_t whole = to.size() * (are_bf16 ? 2 : 4);
    EXPECT_LT(static_cast<double>(blocks.size()), 0.025 * static_cast<double>(whole));
  }
}

TEST(ValueChangesTest, OfAnotherSizeOrMadeUpAreRefused) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 7);
    const std::vector<float> from = RandomBits(1 + random.Below(300), random);
    const std::vector<float> to = Changed(from, 200, random.Below(2) == 0, random);
    std::string blocks;
    AppendChanges(from, to, blocks);
    std::vector<float> made(to.size());
    const size_t cut = random.Below(static_cast<uint32_t>(blocks.size()));

    EXPECT_FALSE(ApplyChanges(std::string_view(blocks).substr(0, cut), from, made));
    EXPECT_FALSE(ApplyChanges(blocks + "x", from, made));
    for (char& byte : blocks) byte = static_cast<char>(random.Below(256));
    (void)ApplyChanges(blocks, from, made);  // Must not write beyond.
  }
}

}  // namespace
}  // namespace slipstream
