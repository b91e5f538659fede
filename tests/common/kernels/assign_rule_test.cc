#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <vector>

#include "common/kernels/rules/update_rule.h"
#include "common/kernels/values_checksum.h"

namespace slipstream {
namespace {

/// A published weight may be anything that is finite, and nothing may round it.
TEST(AssignRuleTest, CopiesEveryBitOfWhatWasPushed) {
  const std::vector<float> pushed = {
      0.0f, -0.0f, 1.5f, std::numeric_limits<float>::denorm_min(), -1e-42f, 0x1.fffffep49f};
  const std::vector<float> before(pushed.size(), 7.0f);
  OptimizerSpec spec;
  spec.kind = RuleKind::kAssign;
  for (const Stores stores : {Stores::kCached, Stores::kStreamed}) {
    std::vector<float> after(pushed.size());
    const Segments segments = {std::as_bytes(std::span(pushed))};

    MakeUpdateRule(spec)->Update({.weights_in = before, .weights_out = after}, {.last = &segments},
                                 {.rate = 0.5f}, {}, stores);

    for (size_t i = 0; i < pushed.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(after[i]), std::bit_cast<uint32_t>(pushed[i])) << i;
    }
  }
}

/// XXH3-64 of no bytes and of these bytes, by the library's own program, xxhsum -H3.
TEST(ValuesChecksumTest, IsThatOfTheBytes) {
  EXPECT_EQ(ValuesChecksum({}), 0x2d06800538d394c2u);
  const std::vector<float> some = {1.0f, 2.0f};
  const std::vector<float> other = {2.0f, 1.0f};
  EXPECT_EQ(ValuesChecksum(some), ValuesChecksum(std::vector<float>(some)));
  EXPECT_NE(ValuesChecksum(some), ValuesChecksum(other));
}

}  // namespace
}  // namespace slipstream
