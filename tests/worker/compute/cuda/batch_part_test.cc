#include "worker/compute/cuda/batch_part.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slipstream::cuda {
namespace {

TEST(BatchPartTest, PartsMakeUpTheBatchAndAreOfNearlyOneSize) {
  for (const size_t devices : {1, 2, 3, 7, 16}) {
    for (const uint32_t examples : {1u, 2u, 5u, 16u, 100u, 4'000'000'000u}) {
      uint32_t end = 0;
      uint32_t smallest = examples;
      uint32_t largest = 0;
      for (size_t device = 0; device < devices; ++device) {
        const BatchPart part = BatchPart::Of(examples, device, devices);
        EXPECT_EQ(part.begin, end);
        end = part.begin + part.count;
        smallest = std::min(smallest, part.count);
        largest = std::max(largest, part.count);
      }
      EXPECT_EQ(end, examples);
      EXPECT_LE(largest - smallest, 1u);
      EXPECT_EQ(largest, BatchPart::Largest(examples, devices));
    }
  }
}

}  // namespace
}  // namespace slipstream::cuda
