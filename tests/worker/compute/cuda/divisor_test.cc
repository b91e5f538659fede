#include "worker/compute/cuda/divisor.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/philox.h"

namespace slipstream::cuda {
namespace {

constexpr uint32_t kEnd = uint32_t{1} << 31;

void ExpectQuotients(uint32_t divisor, const std::vector<uint32_t>& numbers) {
  const Divisor by(divisor);
  for (const uint32_t number : numbers) {
    if (number >= kEnd) continue;
    ASSERT_EQ(by.Of(number), number / divisor) << number << " / " << divisor;
    ASSERT_EQ(by.Of(size_t{number} << 20), (size_t{number} << 20) / divisor);
  }
}

TEST(DivisorTest, DividesAsTheProcessorDoesAroundEveryKindOfMultiple) {
  std::vector<uint32_t> divisors = {kEnd - 1, kEnd / 2, kEnd / 2 + 1, kEnd / 2 - 1};
  for (uint32_t divisor = 1; divisor <= 3000; ++divisor) divisors.push_back(divisor);
  for (const uint32_t divisor : divisors) {
    const uint32_t most = (kEnd - 1) / divisor;
    std::vector<uint32_t> numbers = {0, 1, kEnd - 1};
    for (const uint32_t times : {1u, 2u, most / 2, most}) {
      for (const uint32_t offset : {0u, 1u, divisor - 1}) {
        numbers.push_back(times * divisor + offset);
        numbers.push_back(times * divisor - 1);
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectQuotients(divisor, numbers));
  }
}

TEST(DivisorTest, DividesRandomNumbersByRandomNumbers) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  RandomStream random(kSeed, 1);
  for (int i = 0; i < 200'000; ++i) {
    const uint32_t divisor = random.Below(kEnd - 1) + 1;
    ASSERT_NO_FATAL_FAILURE(ExpectQuotients(divisor >> (i % 31) | 1u, {random.Below(kEnd)}));
  }
}

}  // namespace
}  // namespace slipstream::cuda
