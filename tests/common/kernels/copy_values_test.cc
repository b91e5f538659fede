#include "common/kernels/copy_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "common/base/philox.h"

namespace slipstream {
namespace {

TEST(CopyValuesTest, CopiesValuesWhereverTheyAreCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    std::vector<float> values(random.Below(100));
    for (float& value : values) value = random.Uniform(-1, 1);
    Segments segments;
    for (ByteSegment rest = std::as_bytes(std::span(values)); !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), random.Below(11));  // May be empty.
      segments.push_back(rest.first(size));
      rest = rest.subspan(size);
    }

    std::vector<float> copied(values.size());
    CopyValues(segments, copied);

    ASSERT_EQ(copied, values);
  }
}

}  // namespace
}  // namespace slipstream
