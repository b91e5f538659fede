#include "common/kernels/byte_values.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

// Lengths around those of every processor's vectors, at every alignment.
TEST(ByteValuesTest, AreRoundedAfterEachStepWhateverTheirNumber) {
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37);
  for (const ByteScale& scale :
       {ByteScale{255, 0.4465f, 0.2616f}, ByteScale{1, 72.93f, 1}, ByteScale{}}) {
    for (size_t begin = 0; begin < 20; ++begin) {
      for (size_t count = 0; count <= bytes.size() - begin; count += count < 70 ? 1 : 29) {
        std::vector<float> expected;
        for (size_t i = begin; i < begin + count; ++i) {
          const float share = static_cast<float>(bytes[i]) / scale.divisor;
          expected.push_back((share - scale.mean) / scale.deviation);
        }
        std::vector<float> values(count);

        ScaleBytes(std::span(bytes).subspan(begin, count), scale, values);

        ASSERT_EQ(values, expected);
      }
    }
  }
}

}  // namespace
}  // namespace slipstream
